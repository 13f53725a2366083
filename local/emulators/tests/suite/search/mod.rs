//! The search client against the search engine: the one in this process or, when `SEARCH_ENDPOINT` is
//! set, the OpenSearch that listens there. `faults` is about the one in this process alone,
//! `serverless` about engines that are played.

mod engine;
mod faults;
mod queries;
mod rebuild;
mod serverless;
mod tombstones;
