//! Variants: the requests that change a parent together with its variant.

use http_api::{Code, Problem, Response, Services};
use key_schema::category::CategoryNode;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Product, ProductAction, Stock};
use key_schema::variant::{self, MAX_VARIANTS, Variant};
use table::{Refusals, retry_on_conflict};

use crate::products::{already_exists, created, details_of_revived, explain, no_such_product, revived, stock_missing};
use crate::view::{ProductDetails, product_location};
use crate::{App, stock};

/// Creates the variant `new` with its stock, or revives a retired product as this variant. The
/// transaction also changes the parent.
///
/// # Errors
/// - 422 if the parent is not in the catalogue, is itself a variant, or has too many variants.
/// - 409 `parent_has_stock` if the parent has pieces.
/// - 409 `options_taken` if another variant has the options.
/// - 409 `already_exists` if a product in the catalogue has the id.
pub async fn create(
    app: &App,
    new: &Stored<Product>,
    stock: u64,
    nodes: &[Stored<CategoryNode>],
) -> Result<Response, Problem> {
    let services = &app.services;
    retry_on_conflict(async || {
        let parent = parent(services, new).await?;
        let create = variant::create(new, stock, &parent, nodes)?;
        let Err(refusals) = services.table.transact(&create).await? else {
            return Ok(Some(created(app, new, &ProductDetails::new(stock))));
        };
        if !refusals.names(ProductAction::Product) && !refusals.names(ProductAction::Stock) {
            return refused(services, &refusals, &parent.id).await;
        }
        let retired = services.table.get(&product::read_for_update(&new.id)?).await?;
        let retired = retired.filter(|found| found.retired).ok_or_else(|| already_exists(&new.id))?;
        let details = details_of_revived(services, &new.id, stock).await?;
        let revival = variant::revive(&retired, new, stock, &parent, nodes)?;
        match services.table.transact(&revival).await? {
            Ok(()) => Ok(Some(revived(app, &retired, new.clone(), &details))),
            // Another request has revived the product meanwhile.
            Err(refusals) if refusals.names(ProductAction::Product) => Err(already_exists(&new.id)),
            Err(refusals) => refused(services, &refusals, &parent.id).await,
        }
    })
    .await
}

async fn parent(services: &Services, new: &Product) -> Result<Stored<Product>, Problem> {
    let id = new.parent.as_ref().ok_or_else(|| Problem::internal("a variant has no parent"))?;
    let invalid =
        |detail| Problem::new(Code::InvalidBody, "The product cannot be the parent.").error("/parent", detail);
    if *id == new.id {
        return Err(invalid("is the product itself"));
    }
    let parent = services.table.get(&product::read_for_update(id)?).await?.filter(|parent| !parent.retired);
    let parent = parent.ok_or_else(|| {
        Problem::new(Code::UnknownProduct, "The catalogue has no product with the parent's id.")
            .error("/parent", "is not in the catalogue")
    })?;
    if parent.parent.is_some() {
        return Err(invalid("is itself a variant"));
    }
    if parent.variants.is_some_and(|variants| variants >= MAX_VARIANTS.into()) {
        let most = format!("A product can have at most {MAX_VARIANTS} variants.");
        return Err(Problem::new(Code::TooManyVariants, most));
    }
    Ok(parent)
}

/// Explains a refusal of the actions on the parent. Returns [`None`] if the parent has changed
/// since it was read, so that another attempt reads it again.
async fn refused(
    services: &Services,
    refusals: &Refusals<ProductAction>,
    parent: &ProductId,
) -> Result<Option<Response>, Problem> {
    if let Some(refusal) = refusals.of(ProductAction::Options) {
        let problem = Problem::new(Code::OptionsTaken, "Another variant of the product has these options.");
        let problem = problem.error("/options", "are the options of another variant");
        let sibling = refusal.stored::<Stored<Variant>>()?;
        return Err(match sibling {
            Some(sibling) => problem.location(product_location(&sibling.product_id)),
            None => problem,
        });
    }
    if let Some(refusal) = refusals.of(ProductAction::ParentStock) {
        let stock = match refusal.stored::<Stored<Stock>>()? {
            None => stock::found(services, parent).await?.ok_or_else(|| stock_missing(parent))?,
            Some(stock) => stock,
        };
        if stock.shards.is_some() {
            stock::merge(services, parent).await?;
        } else if stock.available > 0 {
            let detail = "A parent has no stock of its own. Set its stock to 0 before you create its first variant.";
            return Err(Problem::new(Code::ParentHasStock, detail)
                .error("/parent", format!("has {} pieces in stock", stock.available)));
        }
    }
    Ok(None)
}

/// Takes a variant out of the catalogue, or explains why a product cannot be retired.
///
/// # Errors
/// - 404 and 412 as for other products.
/// - 409 `has_variants` if the product has variants in the catalogue.
pub async fn retire(
    services: &Services,
    id: &ProductId,
    version: u64,
) -> Result<Result<Response, Refusals<ProductAction>>, Problem> {
    let product = services.table.get(&product::read_for_update(id)?).await?;
    let product = product.filter(|product| !product.retired).ok_or_else(no_such_product)?;
    if product.meta.version != version {
        return Err(Problem::version_mismatch());
    }
    if product.variants.is_some_and(|variants| variants > 0) {
        let detail = "The product has variants in the catalogue. Delete them first.";
        return Err(Problem::new(Code::HasVariants, detail));
    }
    let Some(retire) = variant::retire(&product, version, Instant::now())? else {
        return Err(Problem::new(Code::Conflict, "The product changed during the request. Send it again."));
    };
    match services.table.transact(&retire).await? {
        Ok(()) => Ok(Ok(Response::no_content())),
        Err(refusals) if refusals.names(ProductAction::Product) => Err(explain(services, id).await?),
        Err(refusals) if refusals.names(ProductAction::Stock) => Ok(Err(refusals)),
        Err(refusals) => Err(Problem::unexpected(&refusals)),
    }
}
