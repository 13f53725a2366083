use item_model::prelude::*;

use crate::index::GSI2;
use crate::pattern::Consistency;

patterns! {
    ASK {
        id: "questions.ask",
        purpose: "Ask a question",
        request: TransactWriteItems,
        key: "PK = QUESTION#<id>, SK = QUESTION; PK = CUSTOMER#<customer>, SK = \
            QUESTION#<complement of created_at>#<id>; SK = PROFILE (check); PK = QUOTA#<hash of \
            the customer>, SK = DAY#<day>; PK = IDEMPOTENCY#<caller>#<key> where there is a key",
        requires: "the question does not exist; the customer exists and has asked fewer questions \
            on the day than the quota; ADD 1 to the quota's counter; the idempotency key is new",
        callers: "owner",
    }
    EDIT {
        id: "questions.edit",
        purpose: "Read a question before answering it",
        request: GetItem,
        key: "PK = QUESTION#<id>, SK = QUESTION",
        returns: "the question",
        consistency: Consistency::Strong("staff may answer a question right after it was asked"),
        callers: "staff",
    }
    ANSWER_IT {
        id: "questions.answer",
        purpose: "Answer a question",
        request: TransactWriteItems,
        key: "PK = QUESTION#<id>, SK = ANSWER#<answer>, QUESTION; PK = CUSTOMER#<customer>, SK = \
            QUESTION#<complement of created_at>#<id>; PK = IDEMPOTENCY#<caller>#<key> where there \
            is a key",
        requires: "the question and its copy exist and have room for an answer; ADD 1 to the \
            number of answers, SET the status to answered; the answer and the idempotency key are \
            new",
        callers: "staff",
    }
    GET {
        id: "questions.get",
        purpose: "Read a question with its answers",
        request: Query,
        key: "PK = QUESTION#<id>, SK from ANSWER# to QUESTION",
        returns: "the answers, oldest first, then the question",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OF_CUSTOMER {
        id: "questions.of-customer",
        purpose: "List a customer's questions",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under QUESTION#",
        returns: "questions, newest first",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    SUPPORT {
        id: "questions.support",
        purpose: "Read the profile and the newest questions in one request",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK from PROFILE to QUESTION$",
        returns: "the profile, then the newest 10 questions",
        consistency: Consistency::Eventual,
        callers: "owner",
    }
    OPEN {
        id: "questions.open",
        purpose: "List the questions that wait for an answer",
        request: ShardedQuery on GSI2,
        key: "GSI2PK = QUESTIONS#open#<shard>, GSI2SK = <created_at>#<id>",
        returns: "open questions, oldest first",
        consistency: Consistency::Eventual,
        callers: "staff",
    }
    ERASABLE {
        id: "questions.erasable",
        purpose: "Find the questions of an erased customer",
        request: Query,
        key: "PK = CUSTOMER#<customer>, SK under QUESTION#",
        returns: "the remaining questions",
        consistency: Consistency::Strong("no later step finds a missed question"),
        callers: "owner",
    }
    ANSWERS {
        id: "questions.answers",
        purpose: "Find the answers to an erased customer's question",
        request: Query,
        key: "PK = QUESTION#<id>, SK under ANSWER#",
        returns: "the answers to a deleted question",
        consistency: Consistency::Strong("no later step finds a missed answer"),
        callers: "owner",
    }
    ERASE {
        id: "questions.erase",
        purpose: "Erase a customer's questions",
        request: BatchWriteItem,
        key: "PK = QUESTION#<id>, SK = QUESTION and ANSWER#<answer>; PK = CUSTOMER#<customer>, SK \
            = QUESTION#<complement of created_at>#<id>",
        requires: "no condition",
        callers: "owner",
    }
}
