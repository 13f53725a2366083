//! Moves a category with its whole subtree to another path.
//!
//! The request that starts a move does as much of the work as its time budget allows. A repeated
//! request or the janitor does the rest. A move does not end while a request can still use the old
//! tree. Clients need not wait for the end of the move.

use std::time::Duration;

use http_api::contract::{Body, route};
use http_api::{Code, Problem, Request, Response, Services};
use key_schema::category;
use key_schema::category::relocation::{CategoryMove, CategoryMoveAction, Phase, begin};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::CategoryPath;
use tokio::time;
use workflows::relocation::{Mover, RelocationError, Walk};

use crate::categories::no_such_category;
use crate::tree;
use crate::view::{MoveView, category_location};

/// The time that a request spends on the move before it responds. The function's timeout is 29
/// seconds, and the last step may need several seconds.
const BUDGET: Duration = Duration::from_secs(10);
/// If a move was updated less than this many seconds ago, another worker is active. The request
/// then leaves the move to that worker.
const AT_WORK_SECONDS: i64 = 5;
/// The maximum number of categories whose new paths a request checks.
const MAX_SEEN: usize = 1000;

#[derive(Body)]
#[body(name = "CategoryDestination")]
struct Destination {
    #[field(example = ["FROZEN", "ICE"])]
    to: CategoryPath,
}

/// Move a category with everything below it
///
/// Moves the category and all categories below it to the path `to`, which must not exist. Their
/// descriptions, their products and the memberships of products in them move too. Missing categories
/// above `to` are created. The move of a large category takes longer than one request. Then the
/// response is 202, and the move continues by itself. Repeat the same request to see the progress.
/// The response is 200 when the move is complete. While the move runs, each product is at the old
/// path or at the new one. A moved product has a new version. If other requests add products at the
/// old path during the move, these products move too. Only one move can run at a time.
#[route(POST "/v1/categories/{path}/move", id = "moveCategory", who = staff, task = "categories", path(CategoryPath),
    body = Destination,
    answers(200 = MoveView<'_> "The move is complete", 202 = MoveView<'_> "The move is running"),
    refuses(
        not_found,
        already_exists = "with the Location of the category at the new path",
        category_moving = "another move is running",
        invalid_body = "also if the new place is inside the category, or if a path would be too deep or too long",
    ))]
pub async fn start(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let from = request.path_by("path", CategoryPath::from_segment)?;
    let Destination { to } = request.body()?;
    if to.is_within(&from) {
        return Err(misplaced("must not be the category itself or in its subtree"));
    }
    let until = time::Instant::now() + BUDGET;
    let mover = Mover::new(&services.table);
    let last = mover.current().await.map_err(failed)?;
    if let Some(moving) = last.as_ref().filter(|last| last.phase != Phase::Done && is(last, &from, &to)) {
        return go_on(&mover, moving, until).await;
    }
    let known = services.table.batch_get(&category::known([&from, &to])?).await?;
    if known.first().is_none_or(Option::is_none) {
        return match last.filter(|last| is(last, &from, &to)) {
            Some(over) => Ok(progress(&over)),
            None => Err(no_such_category()),
        };
    }
    // The new path is also taken if it is an ancestor of the category. Every ancestor of an
    // existing category exists, even if this read misses it.
    if known.get(1).is_some_and(Option::is_some) || from.is_within(&to) {
        return Err(taken(&to));
    }
    if last.as_ref().is_some_and(|last| last.phase != Phase::Done) {
        return Err(another());
    }
    fits(services, &from, &to, until).await?;
    let at = Instant::now();
    if let Some(parent) = to.parent() {
        tree::grow(services, &parent, at).await?;
    }
    let wanted = CategoryMove::new(from, to, at);
    let begin = begin(wanted.clone(), last.as_ref(), services.born(at)?, at)?;
    let Err(refusals) = services.table.transact(&begin).await? else {
        telemetry::crash_point("catalog.move.begun");
        return work(&mover, until).await;
    };
    // The client may have sent the same request twice at once. Then the other request has started
    // this move.
    let now = mover.current().await.map_err(failed)?;
    if let Some(moving) = now.filter(|now| is(now, &wanted.from, &wanted.to)) {
        return Ok(progress(&moving));
    }
    let refused = refusals.iter().map(|refusal| refusal.action).find(|action| *action != CategoryMoveAction::Move);
    Err(match refused {
        Some(CategoryMoveAction::From) => no_such_category(),
        Some(_) => taken(&wanted.to),
        None => another(),
    })
}

/// Continues a move, unless another worker is active.
async fn go_on(mover: &Mover<'_>, moving: &Stored<CategoryMove>, until: time::Instant) -> Result<Response, Problem> {
    if moving.meta.updated_at.plus_seconds(AT_WORK_SECONDS) > Instant::now() {
        return Ok(progress(moving));
    }
    work(mover, until).await
}

/// Works on a move and returns its progress. A failure loses nothing: the response shows how far
/// the move is, and the janitor continues it.
async fn work(mover: &Mover<'_>, until: time::Instant) -> Result<Response, Problem> {
    let moving = match mover.go_on(until).await {
        Ok(moving) => moving,
        Err(error) => {
            tracing::warn!(%error, "the move of a category is left to the janitor");
            mover.current().await.map_err(failed)?
        }
    };
    moving.as_ref().map(progress).ok_or_else(|| Problem::internal("the move of a category is gone"))
}

/// Checks that the whole subtree fits under the new path. The check is skipped when the new path is
/// neither deeper nor longer.
async fn fits(
    services: &Services,
    from: &CategoryPath,
    to: &CategoryPath,
    until: time::Instant,
) -> Result<(), Problem> {
    if to.names().len() <= from.names().len() && to.key_text().len() <= from.key_text().len() {
        return Ok(());
    }
    let mut walk = Walk::below(&services.table, from);
    let mut seen = 0;
    while let Some(node) = walk.next().await.map_err(failed)? {
        if node.path.rebased(from, to).is_none() {
            return Err(misplaced(
                "a category in the subtree would be too deep at the new path, or its path would be too long",
            ));
        }
        seen += 1;
        if seen > MAX_SEEN || time::Instant::now() >= until {
            return Err(misplaced("the subtree has too many categories to check their new paths: move it in parts"));
        }
    }
    Ok(())
}

fn is(known: &CategoryMove, from: &CategoryPath, to: &CategoryPath) -> bool {
    (&known.from, &known.to) == (from, to)
}

fn progress(moving: &Stored<CategoryMove>) -> Response {
    let view = MoveView::from(moving);
    if moving.phase == Phase::Done { Response::ok(&view) } else { Response::accepted(&view) }
}

fn misplaced(detail: &'static str) -> Problem {
    Problem::new(Code::InvalidBody, "The category cannot move to this path.").error("/to", detail)
}

fn taken(to: &CategoryPath) -> Problem {
    Problem::new(Code::AlreadyExists, "A category exists at the new path.").location(category_location(to))
}

fn another() -> Problem {
    Problem::new(Code::CategoryMoving, "Another category is being moved. Try again when that move has ended.")
}

fn failed(error: RelocationError) -> Problem {
    match error {
        RelocationError::Table(error) => error.into(),
        RelocationError::Encode(error) => error.into(),
        error => Problem::internal(error),
    }
}
