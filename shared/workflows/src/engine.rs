//! The engine that runs, resumes and undoes the workflows.
//!
//! [`workflow!`] declares a workflow as a table of steps. A [`Worker`] reads in stored data which
//! step is next, so a workflow has no other state. The engine takes this step, passes the crash
//! point after it, and asks again.
//!
//! Two workers may do the same work at once. A step that must not run twice has a condition, for
//! example on the head of the order or on the item of the move. The table refuses the step of the
//! late worker, and that worker reads the stored data again.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::time::Duration;

use key_schema::item::EncodeError;
use key_schema::key::KeyError;
use table::{Refusals, TableError};
use tokio::time::{self, timeout, timeout_at};

/// A workflow as [`workflow!`] declares it.
#[derive(Debug)]
pub struct Workflow {
    pub name: &'static str,
    pub about: &'static str,
    /// The crash points after the writes with which functions begin the workflow.
    pub begun: &'static [&'static str],
    pub steps: &'static [Step],
}

#[derive(Debug)]
pub struct Step {
    pub name: &'static str,
    pub run: Action,
    /// `None` for a step that is forward only.
    pub undo: Option<Action>,
}

#[derive(Debug)]
pub struct Action {
    pub name: &'static str,
    pub at_most: Bound,
    /// The crash point after the action.
    pub crash: Option<&'static str>,
    /// The crash points after the effects within the action.
    pub within: &'static [&'static str],
}

/// How often one worker may take a step.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    Times(usize),
    /// Until the [`table::Budget`] of the worker is used up.
    Budget,
    /// Until the worker's deadline.
    Deadline,
}

pub(crate) const ONCE: Bound = Bound::Times(1);

/// An error that stopped a workflow. The steps so far remain, and the next worker continues.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError<A: Copy + Debug> {
    /// Some conditions of a transaction do not hold. The refused transaction changed nothing.
    #[error("refused: {:?}", .0.iter().map(|refusal| refusal.action).collect::<Vec<_>>())]
    Refused(Refusals<A>),
    /// Other workers kept changing the same data.
    #[error("other workers keep changing the same data")]
    Contended,
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl<A: Copy + Debug> From<Refusals<A>> for WorkflowError<A> {
    fn from(refusals: Refusals<A>) -> Self {
        Self::Refused(refusals)
    }
}

impl<A: Copy + Debug> From<KeyError> for WorkflowError<A> {
    fn from(error: KeyError) -> Self {
        Self::Encode(error.into())
    }
}

/// A reason why a step was not completed.
pub(crate) enum Stop<A: Copy + Debug> {
    /// Another worker has changed the stored data.
    Late,
    Failed(WorkflowError<A>),
}

impl<A: Copy + Debug, E: Into<WorkflowError<A>>> From<E> for Stop<A> {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

pub(crate) enum Standing<S, E> {
    At(S),
    /// There is nothing left to do.
    Over(E),
}

/// The steps of a worker. [`workflow!`] implements this trait.
pub(crate) trait Plan {
    type Step: Copy;
    /// The actions of the transactions, which refusals name.
    type Refused: Copy + Debug;
    const WORKFLOW: &'static Workflow;

    /// Returns the position of the step in the table, and its declared action.
    fn action(step: Self::Step) -> (usize, Option<&'static Action>);
    async fn take(&mut self, step: Self::Step) -> Result<(), Stop<Self::Refused>>;
}

pub(crate) trait Worker: Plan {
    type End;

    /// Returns the next step. `done` is the step that this worker has just completed. It is `None`
    /// at the beginning and after a late step, when only stored data shows where the work stands.
    async fn stands(
        &mut self,
        done: Option<Self::Step>,
    ) -> Result<Standing<Self::Step, Self::End>, WorkflowError<Self::Refused>>;

    /// Returns the deadline at which the engine interrupts a step.
    fn deadline(&self) -> Option<time::Instant> {
        None
    }
}

/// Takes one step after the other until the work is over.
pub(crate) async fn run<W: Worker>(worker: &mut W) -> Result<W::End, WorkflowError<W::Refused>> {
    let (mut done, mut taken) = (None, BTreeMap::new());
    loop {
        let step = match worker.stands(done.take()).await? {
            Standing::At(step) => step,
            Standing::Over(end) => return Ok(end),
        };
        let (position, action) = W::action(step);
        let times = taken.entry(position).and_modify(|times| *times += 1).or_insert(1_usize);
        let Some(action) = action.filter(|action| !matches!(action.at_most, Bound::Times(most) if *times > most))
        else {
            return Err(WorkflowError::Contended);
        };
        let deadline = worker.deadline();
        // Boxed, because the compiler cannot compute the layout of deeply nested futures.
        let step_taken = Box::pin(worker.take(step));
        let outcome = match deadline {
            Some(deadline) => timeout_at(deadline, step_taken).await.unwrap_or(Err(Stop::Late)),
            None => step_taken.await,
        };
        match outcome {
            Ok(()) => {
                action.crash.into_iter().for_each(telemetry::crash_point);
                done = Some(step);
            }
            Err(Stop::Late) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    Gone,
    /// The work had passed its point of no return, so it is kept.
    Visible,
}

/// Runs the work. After a failure, runs the undos backwards for at most `patience`. If that fails
/// too, the janitor undoes the work.
///
/// # Errors
/// The error of the work if it is undone. [`WorkflowError::Contended`] if the outcome is unknown.
pub(crate) async fn run_or_undo<W, U>(
    worker: &mut W,
    undo: &mut U,
    patience: Duration,
    id: &impl Display,
) -> Result<(), WorkflowError<W::Refused>>
where
    W: Worker<End = ()>,
    U: Worker<End = Undone, Refused = W::Refused>,
{
    let workflow = W::WORKFLOW.name;
    let Err(error) = run(worker).await else { return Ok(()) };
    // If the response of the last transaction was lost, the work may be complete. The undo reads
    // the stored data, and in that case does nothing.
    match timeout(patience, run(undo)).await {
        Ok(Ok(Undone::Visible)) => Ok(()),
        Ok(Ok(Undone::Gone)) => {
            tracing::info!(workflow, %id, %error, "a request has undone its work");
            Err(error)
        }
        // Until the janitor undoes the work, its claims are in use. The error must not say that
        // nothing happened.
        outcome => {
            let error = outcome.ok().and_then(Result::err).map(|error| error.to_string());
            tracing::warn!(workflow, %id, error, "work is left to the janitor");
            Err(WorkflowError::Contended)
        }
    }
}

/// Declares a workflow: a table of its steps, and the workers that run and undo them.
///
/// Each step names the method of the worker that takes it, how often one worker may take it, and
/// its crash points. A step has an undo, or it is forward only.
macro_rules! workflow {
    ($(#[doc = $doc:literal])+ $name:ident of $refused:ty, by $worker:ident undone by $undoer:ident, begun $begun:tt;
        $($steps:tt)+) => {
        workflow! { $(#[doc = $doc])+ $name of $refused, by $worker, begun $begun; $($steps)+ }
        workflow! { @undo $name of $refused, by $undoer; $($steps)+ }
    };
    ($(#[doc = $doc:literal])+ $name:ident of $refused:ty, by $worker:ident, begun $begun:tt; $($step:ident => {
        run $run:ident, at most $most:expr $(, crash $crash:literal)? $(, within $within:literal)*;
        $(undo $undo:ident, at most $undo_most:expr $(, crash $undo_crash:literal)?;)?
        $(forward $only:ident;)?
    })+) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($step,)+ }

        impl $name {
            pub(crate) const WORKFLOW: $crate::engine::Workflow = $crate::engine::Workflow {
                name: stringify!($name),
                about: concat!($($doc,)+),
                begun: &$begun,
                steps: &[$($crate::engine::Step {
                    name: stringify!($step),
                    run: workflow!(@action $run, $most, [$($crash)?], [$($within),*]),
                    undo: workflow!(@either [$($undo, $undo_most, [$($undo_crash)?], [])?] [$($only)?]),
                },)+],
            };
        }

        impl $crate::engine::Plan for $worker<'_> {
            type Step = $name;
            type Refused = $refused;
            const WORKFLOW: &'static $crate::engine::Workflow = &$name::WORKFLOW;

            fn action(step: $name) -> (usize, Option<&'static $crate::engine::Action>) {
                (step as usize, Self::WORKFLOW.steps.get(step as usize).map(|step| &step.run))
            }

            async fn take(&mut self, step: $name) -> Result<(), $crate::engine::Stop<$refused>> {
                match step { $($name::$step => self.$run().await,)+ }
            }
        }
    };
    (@undo $name:ident of $refused:ty, by $undoer:ident; $($step:ident => {
        run $run:ident, at most $most:expr $(, crash $crash:literal)? $(, within $within:literal)*;
        $(undo $undo:ident, at most $undo_most:expr $(, crash $undo_crash:literal)?;)?
        $(forward $only:ident;)?
    })+) => {
        impl $crate::engine::Plan for $undoer<'_> {
            type Step = $name;
            type Refused = $refused;
            const WORKFLOW: &'static $crate::engine::Workflow = &$name::WORKFLOW;

            fn action(step: $name) -> (usize, Option<&'static $crate::engine::Action>) {
                (step as usize, Self::WORKFLOW.steps.get(step as usize).and_then(|step| step.undo.as_ref()))
            }

            async fn take(&mut self, step: $name) -> Result<(), $crate::engine::Stop<$refused>> {
                match step {
                    $($($name::$step => self.$undo().await,)?)+
                    // The engine takes only declared undos.
                    _ => Err($crate::engine::Stop::Late),
                }
            }
        }
    };
    (@action $run:ident, $most:expr, [$($crash:literal)?], [$($within:literal),*]) => {
        $crate::engine::Action {
            name: stringify!($run),
            at_most: $most,
            crash: [$(Some($crash),)? None][0],
            within: &[$($within),*],
        }
    };
    (@either [$($undo:tt)+] []) => { Some(workflow!(@action $($undo)+)) };
    (@either [] [only]) => { None };
}
pub(crate) use workflow;
