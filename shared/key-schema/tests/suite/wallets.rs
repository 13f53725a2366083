//! Tests of wallets: example items, the meaning of the conditions, and the actions for orders.

use key_schema::expression::{Step, number};
use key_schema::id::CustomerId;
use key_schema::item::{Item, Stored};
use key_schema::money::{Currency, Money};
use key_schema::request::{Guarded, Write, render};
use key_schema::wallet::{
    self, EntryKind, MAX_BALANCE, Part, Side, Transfer, Wallet, WalletEntry, WalletError, minus, plus,
};
use serde_dynamo::AttributeValue;

use crate::support::at;
use crate::world::World;

impl World {
    pub fn wallet(&self) -> Stored<Wallet> {
        self.stored(Wallet { customer_id: self.customer.clone(), currency: Currency::USD, amount: 4_500 })
    }

    /// Makes the entry of a received transfer.
    pub fn wallet_entry(&self) -> Stored<WalletEntry> {
        let mut entry = self.payment();
        entry.data.kind = EntryKind::Transfer;
        entry.data.amount = 2_500;
        entry.data.counterparty = Some(CustomerId::new("household-1364").unwrap());
        entry.data.order_id = None;
        entry.data.note = Some("for the ice".into());
        entry
    }

    pub fn payment(&self) -> Stored<WalletEntry> {
        self.stored(WalletEntry {
            customer_id: self.customer.clone(),
            id: self.entry.clone(),
            amount: -774,
            currency: Currency::USD,
            kind: EntryKind::Payment,
            at: at("2017-01-04T10:05:00.000Z"),
            counterparty: None,
            order_id: Some(self.order.clone()),
            note: None,
        })
    }

    pub fn transfer(&self) -> Transfer {
        Transfer {
            id: self.entry.clone(),
            from: self.customer.clone(),
            to: CustomerId::new("household-1364").unwrap(),
            money: self.money(2_500),
            note: Some("for the ice".into()),
            at: at("2017-01-04T10:05:00.000Z"),
        }
    }
}

fn wallet(amount: i64) -> Wallet {
    Wallet { customer_id: CustomerId::new("c1").unwrap(), currency: Currency::USD, amount }
}

fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

#[test]
fn a_wallet_gives_what_it_has_and_takes_what_it_has_room_for() {
    let euros = |amount| Money::new(amount, "EUR".parse().unwrap());
    assert_eq!(minus(Some(&wallet(10)), usd(10)), Ok(usd(0)));
    assert_eq!(minus(Some(&wallet(10)), usd(11)), Err(WalletError::Insufficient));
    assert_eq!(minus(None, usd(1)), Err(WalletError::Insufficient));
    assert_eq!(minus(Some(&wallet(10)), euros(1)), Err(WalletError::OtherCurrency));
    assert_eq!(plus(None, euros(5)), Ok(euros(5)), "the first money decides the currency");
    assert_eq!(plus(Some(&wallet(MAX_BALANCE - 1)), usd(1)), Ok(usd(MAX_BALANCE)));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE)), usd(1)), Err(WalletError::TooMuch));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE)), usd(i64::MAX)), Err(WalletError::TooMuch));
    assert_eq!(plus(Some(&wallet(0)), euros(1)), Err(WalletError::OtherCurrency));
}

/// Returns the amount that an action adds to a balance.
fn added(guarded: &Guarded) -> i64 {
    let Write::Update { steps, .. } = &guarded.write else { panic!("no update") };
    let amounts = steps.iter().filter_map(|step| match step {
        Step::Add("amount", amount) => Some(*amount),
        _ => None,
    });
    amounts.sum()
}

fn put(guarded: &Guarded) -> &Item {
    let Write::Put { item } = &guarded.write else { panic!("no put") };
    item
}

#[test]
fn every_movement_adds_to_a_balance_what_its_entry_says() {
    let (world, now) = (World::plain(), at("2017-02-05T12:00:00.000Z"));
    let (customer, order, id) = (&world.customer, &world.order, &world.entry);
    let debit = wallet::debit(customer, usd(774), order, id, now).unwrap();
    let credit = wallet::credit(customer, usd(774), order, id, now).unwrap();
    for (actions, side, amount, kind) in [(debit, Side::From, -774, "payment"), (credit, Side::To, 774, "refund")] {
        let [(moved, balance), (written, entry)] = actions.try_into().unwrap();
        assert_eq!((moved, written), (Part::Wallet(side), Part::Entry));
        assert_eq!(added(&balance), amount);
        let item = put(&entry);
        assert_eq!(item["amount"], number(amount));
        assert_eq!(item["kind"], AttributeValue::S(kind.into()));
        assert_eq!(item["order_id"], AttributeValue::S(order.to_string()));
        assert_eq!(render(&entry.condition.unwrap()).text, "attribute_not_exists(#0)");
    }
    let claim = wallet::credit(customer, usd(1), order, id, now).unwrap().remove(1).1;
    let moved = wallet::transfer(&world.transfer(), claim).unwrap();
    let actions = moved.actions();
    let sums = [added(&actions[0].1), added(&actions[1].1)];
    assert_eq!(sums, [-2_500, 2_500], "what one loses the other gets");
    assert_eq!([2, 3].map(|at: usize| put(&actions[at].1)["amount"].clone()), sums.map(number));
    assert_eq!([2, 3].map(|at: usize| put(&actions[at].1)["id"].clone())[0], put(&actions[3].1)["id"]);
}

#[test]
fn a_balance_is_added_to_under_conditions_and_never_set() {
    let (world, now) = (World::plain(), at("2017-02-05T12:00:00.000Z"));
    let (customer, order, id) = (&world.customer, &world.order, &world.entry);
    let (_, debit) = wallet::debit(customer, usd(774), order, id, now).unwrap().remove(0);
    let (_, credit) = wallet::credit(customer, usd(774), order, id, now).unwrap().remove(0);
    let shown = |guarded: &Guarded| {
        let expression = render(guarded.condition.as_ref().unwrap());
        let values: Vec<_> = expression.values.into_iter().map(|(_, value)| value).collect();
        (expression.text, values)
    };
    let dollars = AttributeValue::S("USD".into());
    assert_eq!(shown(&debit), ("(#0 = :0 AND #1 >= :1)".into(), vec![dollars.clone(), number(774)]));
    let room = "(attribute_not_exists(#0) OR (#1 = :0 AND #2 < :1))";
    assert_eq!(shown(&credit), (room.into(), vec![dollars, number(MAX_BALANCE - 773)]));
    for guarded in [debit, credit] {
        let Write::Update { steps, .. } = guarded.write else { panic!("no update") };
        assert!(!steps.iter().any(|step| matches!(step, Step::Set("amount", _) | Step::SetIfMissing("amount", _))));
    }
}

#[test]
fn a_kind_is_stored_under_the_name_that_clients_see() {
    for kind in EntryKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}
