//! Plants damage in promotions, their codes and their uses.

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::{TestTable, seed};
use key_schema::id::PromotionId;
use key_schema::instant::Instant;
use key_schema::order::{self, Charges, Order, OrderLine, PlacedOrder, TaxRounding};
use key_schema::pricing::Rules;
use key_schema::promotion::{
    self, AppliedPromotion, Conditions, Goods, Promotion, PromotionCode, Reduction, Use, UsesShard,
};
use ops::verify::Kind::{Claim, Copy, Total};

use super::damage::finds;
use super::{options, run, world};

const ORDER: &str = "0159f8e6-ea80-7111-9111-000000000009";

fn promotion(id: &str, code: Option<&str>) -> Promotion {
    Promotion {
        id: id.parse().unwrap(),
        code: code.map(str::to_owned),
        name: "Sale".to_owned(),
        reduction: Reduction::FreeShipping,
        applies_to: Goods::All,
        conditions: Conditions::default(),
        limit_total: Some(5),
        limit_per_customer: Some(5),
        limit_since: 0,
        exclusive: false,
        priority: 0,
    }
}

/// Fills a table with a shop, a promotion of each kind, and an order that used the promotion with a
/// code. The shipping of the order was free.
async fn shop() -> TestTable {
    let table = TestTable::create().await;
    world::fill(&table).await;
    let coded = seed::stored(promotion("summer", Some("Summer")));
    table.transact(&promotion::create(&Rules::default(), &coded, None).unwrap()).await;
    let automatic = seed::stored(promotion("sale", None));
    table.transact(&promotion::create(&Rules::default(), &automatic, None).unwrap()).await;

    let now = key_schema::id::time_of(ORDER).unwrap();
    let mut head = seed::stored(Order::new(ORDER.parse().unwrap(), "cleo".parse().unwrap(), now, seed::usd(129), 1));
    let applied = AppliedPromotion {
        id: coded.id.clone(),
        name: coded.name.clone(),
        code: coded.code.clone(),
        discount: 500,
        counted: true,
        counted_per_customer: true,
    };
    head.data.charges = Some(Charges {
        items: 129,
        discount: 500,
        shipping: 500,
        shipping_discount: 500,
        tax: 0,
        shipping_total: 0,
        shipping_tax: 0,
        shipping_tax_lines: Vec::new(),
        method: None,
        promotions: vec![applied],
        tax_lines: Vec::new(),
        tax_rounding: TaxRounding::Line,
    });
    let line = OrderLine { quantity: 1, total: seed::usd(129), ..seed::line(&head.id, 1, "tea".parse().unwrap()) };
    let usage = Use {
        promotion: coded.id.clone(),
        limit_total: Some(5),
        limit_per_customer: Some(5),
        shard: None,
        limit_since: 0,
    };
    let uses = promotion::take(&[usage], &head.customer_id, Instant::now()).unwrap();
    let order = PlacedOrder::new(head, vec![seed::stored(line)], "s");
    table.transact(&order::place(&order, &uses).unwrap()).await;
    // The stream's consumer has not derived the sales of the order yet.
    run(&table, &options(true)).await;
    assert!(run(&table, &options(false)).await.is_clean());
    table
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

#[tokio::test]
async fn codes_limits_and_uses_are_compared_with_promotions_and_orders() {
    let table = shop().await;
    let (pk, sk) = ("PROMOTIONCODE#summer", "PROMOTIONCODE");
    table.delete_at(pk, sk).await;
    finds(&table, "no claim", &[(Claim, "PROMOTION")], true).await;

    let (uses, count) = ("PROMOTION#summer", "USES");
    table.set(uses, count, "limit", number(9)).await;
    finds(&table, "limit", &[(Copy, "PROMOTION#summer USES")], true).await;
    table.set(uses, count, "uses", number(0)).await;
    finds(&table, "uses", &[(Total, "PROMOTION#summer USES")], true).await;
    table.delete_at(uses, count).await;
    finds(&table, "no uses", &[(Copy, "PROMOTION#summer USES"), (Total, "PROMOTION#summer USES")], true).await;
    let own = table.keys(uses).await.into_iter().find(|(_, sk)| sk.starts_with("USE#")).unwrap();
    table.set(&own.0, &own.1, "uses", number(0)).await;
    finds(&table, "uses of a customer", &[(Total, "PROMOTION#summer USE#")], true).await;
    // The uses of expired orders stay.
    table.set(uses, count, "uses", number(3)).await;
    finds(&table, "further uses", &[], true).await;

    // The head also counts the uses that a shard has left.
    let unused = UsesShard { promotion_id: "summer".parse().unwrap(), shard: 3, limit_since: 0, unused: 4 };
    table.put(&seed::stored(unused)).await;
    finds(&table, "uses of a shard", &[(Total, "PROMOTION#summer USES")], true).await;

    table.delete_at("PRICING", "PROMOTION#sale").await;
    finds(&table, "number of rules", &[(Total, "PRICING PRICING")], false).await;
}

#[tokio::test]
async fn a_code_without_a_promotion_is_removed() {
    let table = shop().await;
    let promotion_id: PromotionId = "nothing".parse().unwrap();
    table.put(&seed::stored(PromotionCode { code: "winter".to_owned(), promotion_id })).await;
    finds(&table, "orphan", &[(Claim, "PROMOTIONCODE#")], false).await;
}
