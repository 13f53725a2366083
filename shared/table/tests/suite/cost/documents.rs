//! Measures an organization's document with ten sections of 2 KB. An admin makes the changes, which
//! is the most expensive case.

use key_schema::document::{self, CustomerDocument, Document, DocumentSection, Edit, Right, Tie};
use key_schema::id::{Born, CustomerId, DocumentId, SectionName};
use key_schema::item::Stored;

use super::{Bench, organizations};
use crate::data::{at, born, customer_id};

fn text(n: usize) -> String {
    char::from(b'a' + u8::try_from(n % 26).unwrap()).to_string().repeat(2048)
}

fn edit<'a>(old: &'a Stored<Document>, right: Right<'a>, by: &'a CustomerId, born: &'a Born) -> Edit<'a> {
    Edit { old, right, by, at: at(701), born }
}

pub async fn measure(bench: &mut Bench) {
    let (id, organization) = (DocumentId::generate(at(700), [1; 10]), organizations::id());
    let (owner, admin, editor) = (customer_id(3), customer_id(1), customer_id(4));
    let names: Vec<SectionName> = (0..10).map(|n| SectionName::new(format!("section-{n}")).unwrap()).collect();
    let head = Document {
        id: id.clone(),
        owner_id: Some(owner.clone()),
        organization_id: Some(organization.clone()),
        editors: [].into(),
        deleting: false,
        discarded: [].into(),
        removing_since: None,
        title: "Statutes".to_owned(),
        current: 1,
        sections: names.iter().map(|name| (name.clone(), 1)).collect(),
        draft: None,
    };
    let head = Stored::new(head, born(1), at(700));
    let sections = names.iter().enumerate().map(|(n, name)| {
        let (name, by) = (name.clone(), owner.clone());
        let section = DocumentSection { id: id.clone(), name, number: 1, text: text(n), by, at: at(700) };
        Stored::new(section, born(1), at(700))
    });
    let sections: Vec<_> = sections.collect();
    bench.transact("ten sections of 2 KB", document::create(&head, &sections, &owner, false).unwrap()).await;
    bench.get("ten sections", document::get(&id).unwrap()).await;
    let read = document::texts(&id, &head.sections, Some((&organization, &admin))).unwrap();
    bench.batch_get("ten sections of 2 KB and a membership", read).await;
    bench.get("one membership", document::standing(&organization, &admin).unwrap()).await;
    let old = bench.get("ten sections", document::read_for_update(&id).unwrap()).await;

    let (mark, right) = (born(2), Right::Admin(&organization, &admin));
    let (put, old) = document::put_section(edit(&old, right, &admin, &mark), &names[0], text(20)).unwrap();
    bench.transact("one section of 2 KB, published", put).await;
    let add = document::add_editor(&old, &editor, right, &mark, at(701)).unwrap();
    bench.transact("another member of the organization", add).await;
    bench.transact("the only editor", document::remove_editor(&old, &editor, right).unwrap()).await;
    let (begin, old) = document::begin_draft(edit(&old, right, &admin, &mark)).unwrap();
    bench.transact("ten sections", begin).await;
    let (put, old) = document::put_section(edit(&old, right, &admin, &mark), &names[1], text(21)).unwrap();
    bench.transact("one section of 2 KB, in a draft", put).await;
    let draft = old.draft.clone().unwrap();
    let (discard, _) = document::discard_draft(edit(&old, right, &admin, &mark), &draft).unwrap();
    bench.transact("a draft of ten sections", discard).await;
    bench.query("one document", 1, document::removals(at(702)).unwrap()).await;
    let discarded = bench.get("ten sections", document::read_for_update(&id).unwrap()).await;
    bench.transact("one 2 KB section", document::discard_texts(&discarded).unwrap()).await;
    let old = bench.get("ten sections", document::read_for_update(&id).unwrap()).await;
    let (begin, old) = document::begin_draft(edit(&old, right, &admin, &mark)).unwrap();
    bench.table.transact(&begin).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    let draft = old.draft.clone().unwrap();
    let (publish, old) =
        document::publish(edit(&old, right, &admin, &mark), &draft, Some("as agreed".to_owned())).unwrap();
    bench.transact("ten sections", publish).await;
    bench.batch_get("ten sections", document::version(&id, 1).unwrap()).await;
    bench.query("3 versions", 3, document::versions(&id).unwrap().limit(20)).await;
    let first = bench.table.query(&document::history(&id).unwrap().limit(1)).await.unwrap().items.remove(0);
    let _ = bench.table.meter().take();
    let (restore, old) = document::restore(edit(&old, right, &admin, &mark), &first, None).unwrap();
    bench.transact("ten sections", restore).await;

    let retire = document::retire_shared(&old, right, at(702)).unwrap();
    bench.transact("one document", retire).await;
    let retired = bench.table.get(&document::read_for_update(&id).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.query("4 versions", 4, document::history(&id).unwrap().limit(100)).await;
    let versions = bench.table.query(&document::history(&id).unwrap().limit(100)).await.unwrap().items;
    let _ = bench.table.meter().take();
    for (sweep, on) in
        document::sweep_texts(&retired, &versions).unwrap().into_iter().zip(["ten texts of 2 KB", "one text of 2 KB"])
    {
        bench.transact(on, sweep).await;
    }
    for sweep in document::sweep_versions(&retired, &versions).unwrap() {
        bench.transact("4 versions", sweep).await;
    }
    for delete in document::delete(&retired).unwrap() {
        bench.transact("without editors", delete).await;
    }
    bench.table.transact(&document::create(&head, &sections, &owner, false).unwrap()).await.unwrap().unwrap();
    let _ = bench.table.meter().take();
    bench.query("one document", 1, document::of_customer(&owner).unwrap().limit(25)).await;
    bench.transact("the owner", document::release(&head, &owner, Tie::Owner).unwrap()).await;
    bench.update("one document", document::retire(&id, 1, None, at(702)).unwrap()).await;
    let data = CustomerDocument { customer_id: owner, document_id: id, tie: Tie::Owner };
    let tie = Stored::new(data, born(1), at(700));
    bench.seed(&tie).await;
    bench.write("one document", document::forget(&tie).unwrap()).await;
}
