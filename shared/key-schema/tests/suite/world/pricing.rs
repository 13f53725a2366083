//! Examples of shipping zones, tax rules, promotions and quoted orders.

use key_schema::customer::Tier;
use key_schema::id::TaxCategory;
use key_schema::item::Stored;
use key_schema::order::{
    Charges, ChosenMethod, LineDiscount, Order, OrderLine, OrderStatus, TaxLine, TaxRate, TaxRounding,
};
use key_schema::pricing::{Pricing, Rules, ShippingMethod, ShippingRate, ShippingZone, TaxRule};
use key_schema::product::{CategoryPath, Product};
use key_schema::promotion::{
    AppliedPromotion, Conditions, CustomerUses, Goods, Leases, Promotion, PromotionCode, PromotionUses, Reduction, Use,
    UsesShard,
};
use key_schema::quota::CustomerHash;

use super::World;
use crate::support::at;

impl World {
    pub fn pricing(&self) -> Stored<Pricing> {
        self.stored(Pricing { rules: 2 })
    }

    /// Makes the rules after one change: a zone and a tax rule.
    pub fn rules(&self) -> Rules {
        let (zones, tax_rules) = (vec![self.shipping_zone()], vec![self.tax_rule()]);
        Rules { version: 1, zones, tax_rules, promotions: Vec::new() }
    }

    /// Makes a promotion with a code, conditions and limits.
    pub fn promotion(&self) -> Stored<Promotion> {
        self.stored(Promotion {
            id: "summer".parse().unwrap(),
            code: Some("Sümmer 10".into()),
            name: "Summer sale".into(),
            reduction: Reduction::Percentage(1000),
            applies_to: Goods::Category(CategoryPath::new(vec!["GROCERY".into()]).unwrap()),
            conditions: Conditions {
                min_amount: Some(self.money(500)),
                tier: Some(Tier::Silver),
                first_order: true,
                from: Some(at("2017-02-01T00:00:00.000Z")),
                until: Some(at("2017-03-01T00:00:00.000Z")),
            },
            limit_total: Some(100),
            limit_per_customer: Some(2),
            limit_since: 0,
            exclusive: false,
            priority: 7,
        })
    }

    /// Makes a promotion without a code.
    pub fn automatic_promotion(&self) -> Stored<Promotion> {
        let mut promotion = self.promotion();
        promotion.data = Promotion {
            id: "sale".parse().unwrap(),
            code: None,
            reduction: Reduction::BuyXGetY { buy: 2, get: 1 },
            applies_to: Goods::Products(vec![self.product().id.clone()]),
            conditions: Conditions::default(),
            limit_total: None,
            limit_per_customer: None,
            exclusive: true,
            ..promotion.data
        };
        promotion
    }

    /// Makes a use that is counted for all customers and for one customer.
    pub fn promotion_use(&self) -> Use {
        let promotion = self.promotion().id.clone();
        Use { promotion, limit_total: Some(100), limit_per_customer: Some(2), shard: None, limit_since: 0 }
    }

    pub fn uses_shard(&self) -> Stored<UsesShard> {
        self.stored(UsesShard { promotion_id: self.promotion().id.clone(), shard: 3, limit_since: 0, unused: 7 })
    }

    /// Returns uses of which a shard has some left. Their limit is reached.
    pub fn leases(&self) -> Leases {
        let mut head = self.promotion_uses();
        (head.data.uses, head.data.leased) = (90, true);
        Leases { head, shards: vec![self.uses_shard()] }
    }

    pub fn promotion_uses(&self) -> Stored<PromotionUses> {
        PromotionUses::of(&self.promotion())
    }

    pub fn promotion_code(&self) -> Stored<PromotionCode> {
        PromotionCode::of(&self.promotion()).unwrap()
    }

    pub fn customer_uses(&self) -> Stored<CustomerUses> {
        let (promotion_id, customer) = (self.promotion().id.clone(), CustomerHash::of(&self.customer().id));
        self.stored(CustomerUses { promotion_id, customer, uses: 1 })
    }

    pub fn shipping_zone(&self) -> Stored<ShippingZone> {
        let rate = |up_to_grams, price| ShippingRate { up_to_grams, from_amount: None, price: self.money(price) };
        self.stored(ShippingZone {
            id: "alps".parse().unwrap(),
            countries: vec!["CH".parse().unwrap(), "LI".parse().unwrap()],
            regions: None,
            methods: vec![ShippingMethod {
                id: "post".parse().unwrap(),
                name: "Parcel post".into(),
                days: (2, 4),
                rates: vec![rate(Some(2000), 700), rate(Some(10_000), 1100)],
                free_from: Some(self.money(10_000)),
            }],
        })
    }

    /// Makes a zone of one region, with a price that depends on the amount.
    pub fn regional_zone(&self) -> Stored<ShippingZone> {
        let mut zone = self.shipping_zone();
        zone.data.regions = Some(vec!["Zürich".into()]);
        for rate in &mut zone.data.methods[0].rates {
            (rate.up_to_grams, rate.from_amount) = (None, rate.up_to_grams.map(|_| rate.price));
        }
        zone
    }

    pub fn tax_rule(&self) -> Stored<TaxRule> {
        self.stored(TaxRule {
            id: "ch".parse().unwrap(),
            country: "CH".parse().unwrap(),
            region: None,
            category: TaxCategory::new("standard").unwrap(),
            rate_millionths: 81_000,
            included: true,
        })
    }

    /// Makes a tax rule of one region.
    pub fn regional_tax_rule(&self) -> Stored<TaxRule> {
        let mut rule = self.tax_rule();
        rule.data.region = Some("Zürich".into());
        rule
    }

    /// Makes a product that is not sent, with a tax category of its own.
    pub fn unshipped_product(&self) -> Stored<Product> {
        let mut product = self.product();
        product.data.weight_grams = Some(9979);
        product.data.shippable = Some(false);
        product.data.tax_category = Some(TaxCategory::new("reduced").unwrap());
        product
    }

    /// Makes an order that was placed from a quote.
    pub fn quoted_order(&self) -> Stored<Order> {
        let mut order = self.own_order(OrderStatus::Pending);
        order.data.charges = Some(Charges {
            items: 774,
            discount: 74,
            shipping: 700,
            shipping_discount: 0,
            tax: 105,
            shipping_total: 700,
            shipping_tax: 0,
            shipping_tax_lines: Vec::new(),
            promotions: Vec::new(),
            method: Some(ChosenMethod { id: "post".parse().unwrap(), name: "Parcel post".into(), days: (2, 4) }),
            tax_lines: vec![TaxLine {
                rate: TaxRate { rate_millionths: 81_000, included: true },
                amount: 1400,
                tax: 105,
            }],
            tax_rounding: TaxRounding::Line,
        });
        order
    }

    /// Makes an order that used promotions, one of them for shipping.
    pub fn order_with_promotions(&self) -> Stored<Order> {
        let mut order = self.quoted_order();
        let applied = |id: &str, code: Option<&str>, discount| AppliedPromotion {
            id: id.parse().unwrap(),
            name: "Summer sale".into(),
            code: code.map(str::to_owned),
            discount,
            counted: code.is_some(),
            counted_per_customer: code.is_some(),
        };
        let charges = order.data.charges.as_mut().unwrap();
        charges.promotions = vec![applied("summer", Some("Sümmer 10"), 74), applied("free", None, 700)];
        (charges.discount, charges.shipping_discount, charges.shipping_total) = (774, 700, 0);
        order
    }

    /// Makes an order whose shipping is taxed.
    pub fn order_with_taxed_shipping(&self) -> Stored<Order> {
        let mut order = self.quoted_order();
        let charges = order.data.charges.as_mut().unwrap();
        charges.shipping_tax = 53;
        charges.shipping_tax_lines =
            vec![TaxLine { rate: TaxRate { rate_millionths: 81_000, included: true }, amount: 700, tax: 53 }];
        order
    }

    /// Makes a line with two discounts that staff entered, and a tax rate.
    pub fn order_line_with_discounts(&self) -> Stored<OrderLine> {
        let mut line = self.quoted_order_line();
        let discount = |name: &str, amount| LineDiscount { name: name.into(), amount };
        line.data.discounts = vec![discount("retail", 70), discount("coupon", 4)];
        line.data.tax_rate = Some(TaxRate { rate_millionths: 81_000, included: true });
        line
    }

    /// Makes a line with a discount and tax.
    pub fn quoted_order_line(&self) -> Stored<OrderLine> {
        let mut line = self.order_line();
        (line.data.total, line.data.discount, line.data.tax) = (self.money(700), 74, 52);
        line.data.thumbnail = Some(self.media.clone());
        line
    }
}
