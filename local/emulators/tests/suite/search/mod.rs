//! Tests the search client with the search engine: the in-process engine, or the OpenSearch at
//! `SEARCH_ENDPOINT` if that variable is set. `faults` uses only the in-process engine, and
//! `serverless` uses simulated engines.

mod engine;
mod faults;
mod grouping;
mod queries;
mod rebuild;
mod serverless;
mod tombstones;
