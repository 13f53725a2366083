use local::System;
use serde_json::json;

use crate::import::bodega;
use crate::support::client::{Answer, Call};
use crate::support::openapi::{Operation, api};
use crate::support::{clocks_ahead, shop, with_own_system};

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn read(system: &System, customer: &str, token: &str) -> Answer {
    Call::new("GET", &shop::path(&["customers", customer])).header("authorization", &bearer(token)).send(system).await
}

async fn begin(system: &System, customer: &str, token: &str) -> String {
    let call = Call::new("POST", &shop::path(&["customers", customer, "sessions"]));
    let call = call.header("authorization", &bearer(token)).json(&json!({ "device": "phone" }));
    call.send(system).await.expect(201).body["id"].as_str().unwrap().to_owned()
}

async fn end(system: &System, session: &str, token: &str) {
    let call = Call::new("DELETE", &shop::path(&["sessions", session])).header("authorization", &bearer(token));
    call.send(system).await.expect(204);
}

/// Calls an operation that requires a token. The function checks the token first, so the parameters
/// need not name existing records.
async fn try_out(system: &System, operation: Operation<'_>, token: &str) -> Answer {
    let path: Vec<&str> =
        operation.path.split('/').map(|segment| if segment.starts_with('{') { "nothing" } else { segment }).collect();
    let call = Call::new(operation.method, &path.join("/")).header("authorization", &bearer(token));
    let call = if operation.method == "GET" { call } else { call.json(&json!({})) };
    call.send(system).await
}

#[test]
fn every_function_refuses_a_token_whose_session_was_ended() {
    with_own_system(async |system| {
        shop::products(system, &["signed"], 1).await;
        for id in ["sign-ann", "sign-bob"] {
            shop::customer(system, id).await;
        }
        let staff = ["staff".to_owned()];
        let printed = bodega(["token", "--sub", "sign-ann", "--sid", "phone"]).await;
        let phone = printed.out.trim();
        let laptop = system.token_in("laptop", "sign-ann", &[]);
        let desk = system.token_in("desk", "sign-staff", &staff);
        let stranger = system.token_in("phone", "sign-bob", &[]);
        let like = Call::new("PUT", "/v1/customers/sign-ann/likes/signed").header("authorization", &bearer(phone));
        like.send(system).await.expect(201);

        // Every function accepts the token of Ann's phone and the token of a member of staff.
        let secured = || api().operations().filter(|operation| operation.is_secured());
        for operation in secured().filter(|operation| operation.method == "GET") {
            for token in [phone, &desk] {
                assert_ne!(try_out(system, operation, token).await.status, 401, "{}", operation.key());
            }
        }
        // A stranger whose token has the `sid` of Ann's phone cannot end Ann's sign-in.
        let strange = begin(system, "sign-bob", &stranger).await;
        end(system, &strange, &stranger).await;
        clocks_ahead(system, 31).await;
        read(system, "sign-ann", phone).await.expect(200);
        read(system, "sign-bob", &stranger).await.expect(401);

        // Ann ends the session of her phone from her laptop. Staff ends its own session.
        let session = begin(system, "sign-ann", phone).await;
        shop::customer(system, "sign-staff").await;
        let of_desk = begin(system, "sign-staff", &desk).await;
        end(system, &session, &laptop).await;
        end(system, &of_desk, &desk).await;
        clocks_ahead(system, 31).await;
        let mut refused = 0;
        for operation in secured() {
            for token in [phone, &desk] {
                let answer = try_out(system, operation, token).await;
                let problem = (answer.status, &answer.body["code"]);
                assert_eq!(problem, (401, &json!("unauthenticated")), "{}: {}", operation.key(), answer.body);
                refused += 1;
            }
        }
        assert!(refused > 150, "{refused}");
        read(system, "sign-ann", &laptop).await.expect(200);
    });
}
