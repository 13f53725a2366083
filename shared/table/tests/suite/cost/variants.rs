//! Measures variants.

use std::collections::BTreeMap;

use key_schema::item::Stored;
use key_schema::product::{self, Product};
use key_schema::variant::{self, Options};

use super::meter::Bench;
use crate::data::{self, at, product_id};

/// The number of the parent. No other measurement has this product.
const PARENT: u8 = 240;

async fn read(bench: &Bench, number: u8) -> Stored<Product> {
    let read = product::read_for_update(&product_id(number)).unwrap();
    let found = bench.table.get(&read).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    found
}

fn sized(number: u8) -> Stored<Product> {
    let mut product = data::product(number);
    let options = [("size".to_owned(), number.to_string()), ("colour".to_owned(), "red".to_owned())];
    product.data.parent = Some(product_id(PARENT));
    product.data.options = Some(Options::new(BTreeMap::from(options)).unwrap());
    product
}

pub(super) async fn measure(bench: &mut Bench) {
    bench.table.transact(&product::create(&data::product(PARENT), 0, &[]).unwrap()).await.unwrap().unwrap();
    let parent = read(bench, PARENT).await;
    bench.transact("the first variant", variant::create(&sized(241), 1000, &parent, &[]).unwrap()).await;
    let parent = read(bench, PARENT).await;
    for number in 242..=250 {
        let create = variant::create(&sized(number), 1000, &parent, &[]).unwrap();
        if number == 242 {
            bench.transact("a further variant", create).await;
        } else {
            bench.table.transact(&create).await.unwrap().unwrap();
            let _ = bench.table.meter().take();
        }
    }
    bench.query("a parent of 10 variants", 11, product::page(&product_id(PARENT)).unwrap()).await;
    let mut one = read(bench, 241).await;
    bench.transact("one variant", variant::retire(&one, 1, at(1)).unwrap().unwrap()).await;
    one = read(bench, 241).await;
    let parent = read(bench, PARENT).await;
    bench.transact("one variant", variant::revive(&one, &sized(241), 1000, &parent, &[]).unwrap()).await;
    one = read(bench, 241).await;
    bench.write("one variant", variant::refresh(&one).unwrap().unwrap()).await;
}
