//! Tests of wallets: example items, the meaning of the conditions, and the actions for orders.

use std::collections::BTreeMap;

use key_schema::expression::{Step, number};
use key_schema::id::CustomerId;
use key_schema::item::{FromItem as _, Item, Stored};
use key_schema::money::{Currency, LISTED, Money};
use key_schema::request::{Guarded, Write, render};
use key_schema::wallet::{
    self, EntryKind, MAX_BALANCE, Side, Transfer, Wallet, WalletAction, WalletEntry, WalletError, minus, plus,
};
use serde_dynamo::AttributeValue;

use crate::support::at;
use crate::world::World;

impl World {
    pub fn wallet(&self) -> Stored<Wallet> {
        self.stored(Wallet { customer_id: self.customer.clone(), ..wallet(4_500) })
    }

    pub fn wallet_of_two_currencies(&self) -> Stored<Wallet> {
        let mut wallet = self.wallet();
        wallet.data.balances.insert(euros(0).currency, 300);
        wallet
    }

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
    Wallet { customer_id: CustomerId::new("c1").unwrap(), balances: BTreeMap::from([(Currency::USD, amount)]) }
}

fn euros(amount: i64) -> Money {
    Money::new(amount, "EUR".parse().unwrap())
}

fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::USD)
}

#[test]
fn a_balance_stays_between_zero_and_its_limit() {
    assert_eq!(minus(Some(&wallet(10)), usd(10)), Ok(usd(0)));
    assert_eq!(minus(Some(&wallet(10)), usd(11)), Err(WalletError::Insufficient));
    assert_eq!(minus(None, usd(1)), Err(WalletError::Insufficient));
    assert_eq!(minus(Some(&wallet(10)), euros(1)), Err(WalletError::Insufficient));
    assert_eq!(plus(None, euros(5)), Ok(euros(5)));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE - 1)), usd(1)), Ok(usd(MAX_BALANCE)));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE)), usd(1)), Err(WalletError::TooMuch));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE)), usd(i64::MAX)), Err(WalletError::TooMuch));
    assert_eq!(plus(Some(&wallet(MAX_BALANCE)), euros(1)), Ok(euros(1)), "each currency has its own limit");
}

fn added(guarded: &Guarded) -> i64 {
    let Write::Update { steps, .. } = &guarded.write else { panic!("not an update") };
    let amounts = steps.iter().filter_map(|step| match step {
        Step::AddNamed(name, amount) if name == "USD" => Some(*amount),
        _ => None,
    });
    amounts.sum()
}

fn put(guarded: &Guarded) -> &Item {
    let Write::Put { item } = &guarded.write else { panic!("not a put") };
    item
}

#[test]
fn every_movement_adds_the_amount_of_its_entry_to_a_balance() {
    let (world, now) = (World::plain(), at("2017-02-05T12:00:00.000Z"));
    let (customer, order, id) = (&world.customer, &world.order, &world.entry);
    let debit = wallet::debit(customer, usd(774), order, id, now).unwrap();
    let credit = wallet::credit(customer, usd(774), order, id, now).unwrap();
    for (actions, side, amount, kind) in [(debit, Side::From, -774, "payment"), (credit, Side::To, 774, "refund")] {
        let [(moved, balance), (written, entry)] = actions.try_into().unwrap();
        assert_eq!((moved, written), (WalletAction::Wallet(side), WalletAction::Entry));
        assert_eq!(added(&balance), amount);
        let item = put(&entry);
        assert_eq!(item["amount"], number(amount));
        assert_eq!(item["kind"], AttributeValue::S(kind.into()));
        assert_eq!(item["order_id"], AttributeValue::S(order.to_string()));
        assert_eq!(render(&entry.condition.unwrap()).text, "attribute_not_exists(#0)");
    }
    let claim = wallet::credit(customer, usd(1), order, id, now).unwrap().remove(1).1;
    let moved = wallet::transfer(&world.transfer(), claim, true).unwrap();
    let actions = moved.actions();
    let sums = [added(&actions[0].1), added(&actions[1].1)];
    assert_eq!(sums, [-2_500, 2_500], "the amounts of both entries sum to 0");
    assert_eq!([2, 3].map(|at: usize| put(&actions[at].1)["amount"].clone()), sums.map(number));
    assert_eq!([2, 3].map(|at: usize| put(&actions[at].1)["id"].clone())[0], put(&actions[3].1)["id"]);
}

#[test]
fn writes_add_to_a_balance_under_conditions_and_never_set_it() {
    let (world, now) = (World::plain(), at("2017-02-05T12:00:00.000Z"));
    let (customer, order, id) = (&world.customer, &world.order, &world.entry);
    let (_, debit) = wallet::debit(customer, usd(774), order, id, now).unwrap().remove(0);
    let (_, credit) = wallet::credit(customer, usd(774), order, id, now).unwrap().remove(0);
    let shown = |guarded: &Guarded| {
        let expression = render(guarded.condition.as_ref().unwrap());
        let values: Vec<_> = expression.values.into_iter().map(|(_, value)| value).collect();
        (expression.text, values)
    };
    assert_eq!(shown(&debit), ("#0 >= :0".into(), vec![number(774)]));
    let room = "(attribute_not_exists(#0) OR #0 < :0)";
    assert_eq!(shown(&credit), (room.into(), vec![number(MAX_BALANCE - 773)]));
    let (_, in_euros) = wallet::credit(customer, euros(774), order, id, now).unwrap().remove(0);
    let names = render(in_euros.condition.as_ref().unwrap()).names;
    assert_eq!(names.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), ["EUR"]);
    for guarded in [debit, credit, in_euros] {
        let Write::Update { steps, .. } = guarded.write else { panic!("not an update") };
        let set = |step: &Step| matches!(step, Step::Set(name, _) | Step::SetIfMissing(name, _) if name.parse::<Currency>().is_ok());
        assert!(!steps.iter().any(set));
    }
}

/// A customer can receive money in every listed currency from other customers. The wallet must stay
/// below 4 KB, so that a transaction writes it for at most 8 write units.
#[test]
fn a_wallet_with_every_currency_has_less_than_four_kilobytes() {
    let codes: Vec<&str> = LISTED.split_ascii_whitespace().collect();
    assert!(codes.is_sorted() && codes.len() == 181, "{}", codes.len());
    let all = codes.iter().map(|code| Money::new(MAX_BALANCE, code.parse().unwrap()));
    let mut wallet = World::plain().wallet();
    wallet.data.balances = all.map(|money| (money.currency, money.amount)).collect();
    wallet.data.customer_id = CustomerId::new("x".repeat(128)).unwrap();
    let item = wallet.to_item().unwrap();
    assert!(key_schema::item::size(&item) < 4096, "{}", key_schema::item::size(&item));
    assert_eq!(Stored::<Wallet>::from_item(item).unwrap(), wallet);
    for unlisted in ["AAA", "DEM", "usd", "ED ", "USDX"] {
        assert!(unlisted.parse::<Currency>().is_err(), "{unlisted}");
    }
}

#[test]
fn a_kind_is_stored_under_the_name_that_clients_see() {
    for kind in EntryKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}
