//! Generates `docs/authorization.md` from the tested matrix.

use std::fmt::Write as _;

use super::access::{Access, Bearer, Outcome, Person};
use super::tokens::Forger;
use crate::support::openapi::api;
use crate::support::root;

const HEAD: &str = "\
# Authorization

The tests generate this page: `UPDATE_DOCS=1 cargo test -p bodega-tests --test suite authorization`.

The table has the response of every route to every kind of caller. Two files decide the responses. \
[template.yaml](../template.yaml) says which routes have an authorizer.
In [openapi.yaml](../openapi.yaml), `x-who` says who may call a route, and the documented statuses say how the route \
refuses other callers. The tests send a request for each cell of the table.
Everything in this request except the caller is valid. `yes` means that the request succeeds. A status \
means that the route refuses the request with this status, and that nothing is written.

## People

- *No token*: API Gateway answers 401, except on public routes.
- *Not signed up*: a caller with a valid token and without a profile, who requests records of other customers.
- *Stranger*: a customer without rights to the record.
- *Member* and *admin*: customers with this role in the organization, or in the organization of the document. For all \
other records they are strangers.
- *Owner*: the owner of the record. For an organization, this is a second admin.

The function answers 404 (`not_found`) for a record of another customer. It answers 403 (`forbidden`) on routes for \
staff, and to callers who may see the record but not change it.

";

const TOKENS: &str = "
## Tokens

On a public route, a request with any of these tokens gets the same response as without a token, because no authorizer \
reads it. On every other route, the
last column has the status, or the caller who gets the same response. Every token that API Gateway refuses claims to \
be a staff token. The function answers 401 `unauthenticated` to
a token without a `sub`. It answers 403 `forbidden` to a token whose `sub` cannot be an id, and names the rule of ids \
that the `sub` breaks.

";

#[test]
fn the_page_of_the_matrix_is_up_to_date() {
    let access = Access::read();
    let tokens = Forger::without_the_key().all();
    let mut page = HEAD.to_owned();
    let names: Vec<&str> = Person::ALL.iter().map(|person| person.name()).collect();
    writeln!(page, "| route | who | {} |\n| --- | --- |{}", names.join(" | "), " --- |".repeat(names.len())).unwrap();
    for operation in api().operations() {
        let cells = Person::ALL.map(|person| match access.of(operation, person) {
            Outcome::Done => "yes".to_owned(),
            Outcome::Gateway => "401".to_owned(),
            Outcome::Refused(status, _) => status.to_string(),
        });
        writeln!(page, "| `{}` | {} | {} |", operation.key(), operation.who(), cells.join(" | ")).unwrap();
    }
    page.push_str(TOKENS);
    page.push_str("| token | response |\n| --- | --- |\n");
    for token in &tokens {
        let bearer = match token.bearer {
            Bearer::Refused => "401 of API Gateway",
            Bearer::Nameless => "401 of the function",
            Bearer::NoId => "403 of the function",
            Bearer::Person(person) => person.name(),
        };
        writeln!(page, "| {} | {bearer} |", token.what).unwrap();
    }
    let path = root().join("docs/authorization.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "{} is stale", path.display());
}
