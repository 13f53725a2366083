//! Measures the move of a category with two subcategories. One subcategory has a title and 25
//! products. One of these products is also in the other subcategory.

use key_schema::category::relocation::{self, CategoryMove};
use key_schema::category::{self, CategoryAbout, CategoryNode};
use key_schema::id::ProductId;
use key_schema::item::Stored;
use key_schema::membership;
use key_schema::membership::CategorizedItem;
use key_schema::product::{self, CategoryPath, Product};

use super::Bench;
use crate::data::{self, at, born, stored};

fn path(names: &[&str]) -> CategoryPath {
    CategoryPath::new(names.iter().map(ToString::to_string).collect()).unwrap()
}

pub async fn measure(bench: &mut Bench) {
    let (from, to) = (path(&["GROCERY", "SEASONAL"]), path(&["SEASONAL"]));
    let (leaf, kept) = (path(&["GROCERY", "SEASONAL", "BARBECUE"]), path(&["GROCERY", "SEASONAL", "EASTER"]));
    let ids = furnish(bench, &from, &leaf, &kept).await;

    let wanted = CategoryMove::new(from.clone(), to, at(900));
    bench.transact("one category", relocation::begin(wanted, None, born(90), at(900)).unwrap()).await;
    let moving = bench.get("the move", relocation::get().unwrap()).await;
    bench.query("2 children", 2, relocation::below(&from, None).unwrap()).await;
    let about = bench.get("one category", relocation::about(&leaf).unwrap()).await;
    let successor = moving.destination(&leaf).unwrap();
    let copy = relocation::copy(&moving, &leaf, &successor, Some(&about), at(901)).unwrap();
    bench.transact("one described category", copy).await;
    let moving = bench.update("the next phase", relocation::next_phase(&moving, at(902)).unwrap()).await;

    bench.query("25 products and a membership", 26, relocation::listed(&from).unwrap()).await;
    bench.batch_get("25 products, one of them in a further category", relocation::read(&ids).unwrap()).await;
    bench
        .transact("one category", relocation::add(&moving, [&moving.destination(&kept).unwrap()], at(903)).unwrap())
        .await;
    let items = bench.table.batch_get(&relocation::read(&ids).unwrap()).await.unwrap();
    let _ = bench.table.meter().take();
    let mut products = Vec::new();
    for pair in items.chunks(2) {
        let [Some(CategorizedItem::Product(product)), further] = pair else { panic!("{pair:?}") };
        if let Some(CategorizedItem::ProductCategories(further)) = further {
            let transfer = relocation::transfer(&moving, product, further, at(904)).unwrap().unwrap();
            bench.transact("one membership, and its product", transfer).await;
            continue;
        }
        products.push((product, moving.destination(&product.category_path).unwrap()));
    }
    bench.transact("24 products", relocation::move_products(&moving, &products, at(905)).unwrap()).await;

    bench.transact("one category", relocation::clear(&moving, &leaf, at(906)).unwrap()).await;
    bench.transact("one category", relocation::keep(&moving, &from, at(907)).unwrap()).await;
}

async fn furnish(bench: &mut Bench, from: &CategoryPath, leaf: &CategoryPath, kept: &CategoryPath) -> Vec<ProductId> {
    let nodes = [from, leaf, kept].map(|path| stored(CategoryNode::new(path.clone()), 90));
    assert!(bench.table.batch_write(&category::add(&nodes).unwrap()).await.unwrap().is_empty());
    let about = CategoryAbout { path: leaf.clone(), title: Some("Barbecue".to_owned()), description: None };
    bench.table.transact(&category::describe(&stored(about, 90)).unwrap()).await.unwrap().unwrap();
    let products = (200..225).map(|number| {
        let mut product: Stored<Product> = data::product(number);
        product.data.category_path = leaf.clone();
        product
    });
    let products: Vec<Stored<Product>> = products.collect();
    let create = product::create_many(products.iter().map(|product| (product, 5))).unwrap();
    bench.table.transact(&create).await.unwrap().unwrap();
    let add = membership::add(&products[0], kept, None, &born(90), at(890)).unwrap();
    bench.table.transact(&add).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    products.into_iter().map(|product| product.data.id).collect()
}
