//! A catalogue, and a model of its expected content.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::time::Duration;

use fixture::TestTable;
use fixture::seed::{self, born, usd};
use key_schema::category::relocation::{self, CategoryMove, Phase};
use key_schema::category::{self, CategoryAbout, CategoryNode};
use key_schema::id::{Born, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Entity as _, Stored};
use key_schema::membership::CategorizedItem;
use key_schema::membership::{self, ProductCategories};
use key_schema::product::{self, CategoryIndexKey, CategoryPath, Product};
use tokio::time;
use workflows::relocation::{Mover, Walk};

pub use fixture::seed::path;

const FOREVER: i64 = 1_000_000;

pub struct Shop {
    test: TestTable,
    pub known: Known,
    /// All descriptions that any category ever had.
    pub descriptions: Vec<String>,
}

impl Deref for Shop {
    type Target = TestTable;

    fn deref(&self) -> &Self::Target {
        &self.test
    }
}

/// The content that the catalogue must have, independent of the move's progress.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The category of each product, and its further categories.
    pub products: BTreeMap<String, (CategoryPath, BTreeSet<CategoryPath>)>,
    pub titles: BTreeMap<CategoryPath, String>,
}

impl Known {
    /// Returns the content after a category has moved.
    pub fn moved(&self, from: &CategoryPath, to: &CategoryPath) -> Self {
        let moved = |path: &CategoryPath| path.rebased(from, to).unwrap_or_else(|| path.clone());
        let product = |(path, further): &(CategoryPath, BTreeSet<CategoryPath>)| {
            (moved(path), further.iter().map(moved).collect())
        };
        Self {
            products: self.products.iter().map(|(id, places)| (id.clone(), product(places))).collect(),
            titles: self.titles.iter().map(|(path, title)| (moved(path), title.clone())).collect(),
        }
    }
}

fn id(id: &str) -> ProductId {
    id.parse().unwrap()
}

fn stored(path: CategoryPath) -> Stored<CategoryNode> {
    Stored::new(CategoryNode::new(path), born(), Instant::now())
}

impl Shop {
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        Self { test, known: Known::default(), descriptions: Vec::new() }
    }

    pub async fn grow(&self, path: &CategoryPath) {
        let nodes: Vec<_> = path.lineage().map(stored).collect();
        assert_eq!(self.own().batch_write(&category::add(&nodes).unwrap()).await.unwrap(), []);
    }

    /// Creates a product without creating its category.
    pub async fn create_late(&mut self, name: &str, path: &CategoryPath) {
        let product = Product { category_path: path.clone(), ..seed::product(name, usd(129)) };
        self.sell(product, 1).await;
        self.known.products.insert(name.to_owned(), (path.clone(), BTreeSet::new()));
    }

    /// Creates a product and its categories.
    pub async fn create(&mut self, name: &str, path: &CategoryPath) {
        self.grow(path).await;
        self.create_late(name, path).await;
    }

    pub async fn read(&self, name: &str) -> (Stored<Product>, Option<Stored<ProductCategories>>) {
        let mut items = self.own().batch_get(&membership::prepare(&id(name)).unwrap()).await.unwrap().into_iter();
        let (product, further) = (items.next().flatten(), items.next().flatten());
        let Some(CategorizedItem::Product(product)) = product else { panic!("{name}") };
        let further = further.map(|further| {
            let CategorizedItem::ProductCategories(further) = further else { panic!("{name}") };
            further
        });
        (product, further)
    }

    /// Changes a product's category, as a client does.
    pub async fn put_elsewhere(&mut self, name: &str, path: &CategoryPath) {
        self.grow(path).await;
        let (product, _) = self.read(name).await;
        let index_key = CategoryIndexKey { category_path: path, id: &product.id };
        let change = key_schema::change::Change::visible(Instant::now()).enter(&index_key).unwrap();
        let update = product::update(&product.id, change, product.meta.version).unwrap();
        self.own().update(&update).await.unwrap().unwrap();
        self.known.products.get_mut(name).unwrap().0 = path.clone();
    }

    /// Adds a product to a further category, unless it is already there.
    pub async fn put_into(&mut self, name: &str, path: &CategoryPath) {
        let (product, further) = self.read(name).await;
        if further.as_ref().is_some_and(|further| further.paths.contains(path)) {
            return;
        }
        self.grow(path).await;
        let add = membership::add(&product, path, further.as_ref(), &born(), Instant::now()).unwrap();
        self.transact(&add).await;
        self.known.products.get_mut(name).unwrap().1.insert(path.clone());
    }

    /// Describes a category for the first time. Returns `false` when the category is moving or does
    /// not exist.
    pub async fn describe(&mut self, path: &CategoryPath, title: &str) -> bool {
        let about = CategoryAbout { path: path.clone(), title: Some(title.to_owned()), description: None };
        let mut about = Stored::new(about, born(), Instant::now());
        about.meta.version = 2;
        let done = self.own().transact(&category::describe(&about).unwrap()).await.unwrap().is_ok();
        if done {
            self.known.titles.insert(path.clone(), title.to_owned());
            self.descriptions.push(title.to_owned());
        }
        done
    }

    pub async fn begin(&self, from: &CategoryPath, to: &CategoryPath) {
        if let Some(parent) = to.parent() {
            self.grow(&parent).await;
        }
        let at = Instant::now();
        let last = self.mover().current().await.unwrap();
        let wanted = CategoryMove::new(from.clone(), to.clone(), at);
        let born = Born::new(format!("move-{}", last.as_ref().map_or(1, |last| last.meta.rev))).unwrap();
        self.transact(&relocation::begin(wanted, last.as_ref(), born, at).unwrap()).await;
    }

    /// Returns a worker whose wait for requests in progress is longer than any test.
    pub fn mover(&self) -> Mover<'_> {
        Mover::new(self.own()).settling(FOREVER)
    }

    pub async fn current(&self) -> Stored<CategoryMove> {
        self.mover().current().await.unwrap().unwrap()
    }

    /// Completes the move without waiting for requests in progress.
    pub async fn finish(&self) -> Stored<CategoryMove> {
        let moving = Mover::new(self.own()).settling(0).go_on(far()).await.unwrap().unwrap();
        assert_eq!(moving.phase, Phase::Done);
        moving
    }

    /// Returns the given top categories and all categories below them.
    pub async fn categories(&self, tops: &[&str]) -> BTreeMap<CategoryPath, Stored<CategoryNode>> {
        let mut found = BTreeMap::new();
        for top in tops {
            let top = path(&[top]);
            for node in self.own().batch_get(&category::known([&top]).unwrap()).await.unwrap().into_iter().flatten() {
                found.insert(node.path.clone(), node);
            }
            let mut walk = Walk::below(self.own(), &top);
            while let Some(node) = walk.next().await.unwrap() {
                found.insert(node.path.clone(), node);
            }
        }
        found
    }

    /// Checks that the catalogue equals the model, that no category is missing, and that none is
    /// marked as moving.
    pub async fn assert_is(&self, model: &Known, tops: &[&str]) {
        let categories = self.categories(tops).await;
        for node in categories.values() {
            assert!(!node.moving, "{} is still marked as moving", node.path);
        }
        let exists = |path: &CategoryPath| path.lineage().all(|above| categories.contains_key(&above));
        for path in categories.keys() {
            assert!(exists(path), "{path} has no parent");
        }
        let mut listed: BTreeMap<String, BTreeSet<(String, Option<String>)>> = BTreeMap::new();
        for top in tops {
            let mut after = None;
            loop {
                let query = product::in_category(&path(&[top])).unwrap().after(after);
                let page = self.own().query(&query).await.unwrap();
                for entry in page.items {
                    let place = (entry.category_path.key_text(), entry.further.clone());
                    assert!(listed.entry(entry.id.to_string()).or_default().insert(place), "{} twice", entry.id);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        for (name, (place, further)) in &model.products {
            let (product, list) = self.read(name).await;
            assert_eq!(&product.category_path, place, "{name}");
            assert!(exists(place), "{name} is in {place}, which does not exist");
            let list: BTreeSet<CategoryPath> =
                list.map(|list| list.data.paths).unwrap_or_default().into_iter().collect();
            assert_eq!(&list, further, "{name}");
            let members = self.own().query(&membership::of_product(&id(name)).unwrap()).await.unwrap();
            let members: BTreeSet<CategoryPath> = members.items.into_iter().map(|member| member.data.path).collect();
            assert_eq!(&members, further, "{name}");
            for path in further {
                assert!(exists(path), "{name} is in {path}, which does not exist");
            }
            let entries = listed.remove(name).unwrap();
            let shown: BTreeSet<Option<String>> = entries.into_iter().map(|(_, further)| further).collect();
            let expected: BTreeSet<_> = further.iter().map(|path| Some(path.key_text())).chain([None]).collect();
            assert_eq!(shown, expected, "{name} in the lists");
        }
        assert_eq!(listed, BTreeMap::new(), "unknown products");
        assert_eq!(self.titles(tops).await, model.titles);
    }

    /// Returns the descriptions of the existing categories.
    pub async fn titles(&self, tops: &[&str]) -> BTreeMap<CategoryPath, String> {
        let mut titles = BTreeMap::new();
        for path in self.categories(tops).await.keys() {
            if let Some(about) = self.own().get(&relocation::about(path).unwrap()).await.unwrap() {
                titles.insert(path.clone(), about.data.title.unwrap_or_default());
            }
        }
        titles
    }

    /// Adds a category without its ancestors.
    pub async fn add_alone(&self, path: &CategoryPath) {
        let left = self.own().batch_write(&category::add(&[stored(path.clone())]).unwrap()).await.unwrap();
        assert_eq!(left, []);
    }

    /// Removes only this category, without any condition.
    pub async fn remove_node(&self, path: &CategoryPath) {
        self.delete(&CategoryNode::new(path.clone()).key().unwrap()).await;
    }
}

pub fn far() -> time::Instant {
    time::Instant::now() + Duration::from_secs(600)
}
