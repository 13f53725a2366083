//! Measures shipping zones, tax rules and promotions.

use key_schema::id::{CustomerId, MethodId, PromotionId, TaxCategory, TaxRuleId, ZoneId};
use key_schema::pricing::{self, Rules, STANDARD, ShippingMethod, ShippingRate, ShippingZone, TaxRule};
use key_schema::promotion::{self, Conditions, Goods, Leases, Promotion, Reduction, USE_SHARDS};

use super::meter::Bench;
use crate::data::{self, at};

async fn known(bench: &Bench) -> Rules {
    let read = bench.table.query(&pricing::read_for_update().unwrap()).await.unwrap();
    let _ = bench.table.meter().take();
    Rules::from_items(read.items)
}

pub(super) async fn rules(bench: &mut Bench) {
    let zone = ShippingZone {
        id: ZoneId::new("alps").unwrap(),
        countries: vec!["CH".parse().unwrap()],
        regions: None,
        methods: vec![ShippingMethod {
            id: MethodId::new("post").unwrap(),
            name: "Parcel post".to_owned(),
            days: (2, 4),
            rates: vec![ShippingRate { up_to_grams: None, from_amount: None, price: data::usd(700) }],
            free_from: None,
        }],
    };
    let rule = TaxRule {
        id: TaxRuleId::new("ch").unwrap(),
        country: "CH".parse().unwrap(),
        region: None,
        category: TaxCategory::new(STANDARD).unwrap(),
        rate_millionths: 81_000,
        included: true,
    };
    bench.transact("the first zone", pricing::create(&Rules::default(), &data::stored(zone.clone(), 1)).unwrap()).await;
    let before = known(bench).await;
    bench.transact("a tax rule", pricing::create(&before, &data::stored(rule, 1)).unwrap()).await;
    bench.query("a zone and a tax rule", 3, pricing::read().unwrap()).await;
    bench.query("a zone and a tax rule", 3, pricing::read_for_update().unwrap()).await;
    let before = known(bench).await;
    bench.transact("a zone", pricing::change_zone(&before, &zone, 1, at(1)).unwrap()).await;
    let before = known(bench).await;
    bench.transact("a deleted zone", pricing::delete(&before, &zone, 2, at(2)).unwrap()).await;
}

pub(super) async fn promotions(bench: &mut Bench) {
    let promotion = |id: &str, code: Option<&str>| {
        let promotion = Promotion {
            id: PromotionId::new(id).unwrap(),
            code: code.map(str::to_owned),
            name: "Summer sale".to_owned(),
            reduction: Reduction::Percentage(1000),
            applies_to: Goods::All,
            conditions: Conditions::default(),
            limit_total: Some(100),
            limit_per_customer: Some(1),
            limit_since: 0,
            exclusive: false,
            priority: 0,
        };
        data::stored(promotion, 1)
    };
    let (customer, coded, automatic) =
        (CustomerId::new("c1").unwrap(), promotion("summer", Some("S")), promotion("sale", None));
    bench.transact("with a code", promotion::create(&Rules::default(), &coded, None).unwrap()).await;
    bench.transact("without a code", promotion::create(&known(bench).await, &automatic, None).unwrap()).await;
    let codes = ["s".to_owned(), "x".to_owned()];
    bench.batch_get("a right and an unknown code", promotion::find(&codes, &customer, at(1)).unwrap()).await;
    bench.write("an unknown code", promotion::count_unknown_codes(&customer, 1, at(1)).unwrap()).await;
    let read = promotion::read([&coded.id], [&automatic.id], &customer).unwrap();
    bench.batch_get("a code and an automatic promotion, both unused by the customer", read).await;
    bench.batch_get("a promotion with its uses", promotion::get(&coded.id).unwrap()).await;
    bench.query("two promotions", 2, promotion::list().unwrap()).await;
    bench.batch_get("two promotions", promotion::uses([&coded.id, &automatic.id]).unwrap()).await;
    let all = |shards| promotion::leases(&coded.id, shards).unwrap();
    bench.batch_get("the head and one shard, unused", all(0..1)).await;
    bench.batch_get("the head and 64 shards, unused", all(0..USE_SHARDS.0)).await;
    let read = bench.table.batch_get(&all(0..1)).await.unwrap();
    let leases = Leases::of(read.into_iter().flatten()).unwrap();
    let _ = bench.table.meter().take();
    bench.transact("a first lease", promotion::lease(&leases, 0, 10, at(1)).unwrap()).await;
    let read = bench.table.batch_get(&all(0..1)).await.unwrap();
    let leases = Leases::of(read.into_iter().flatten()).unwrap();
    let _ = bench.table.meter().take();
    bench.write("one promotion", promotion::spent(&leases.head).unwrap()).await;
    let raised = Promotion { limit_total: Some(200), ..coded.data.clone() };
    bench.transact("another limit", promotion::change(&coded, &raised, at(2)).unwrap()).await;
    let named = Promotion { name: "Sale".to_owned(), ..automatic.data.clone() };
    bench.transact("another name", promotion::change(&automatic, &named, at(2)).unwrap()).await;
    let mut coded = coded;
    coded.meta.version = 2;
    bench.transact("with a code", promotion::delete(&Rules::default(), &coded, at(3)).unwrap()).await;
}
