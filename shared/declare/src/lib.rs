//! The macros that declare a route at its handler, and the bodies of its request and responses.
//!
//! The crate `http-api` exports them and explains them (`http_api::contract`). From one declaration
//! come the function's router and reader, and the operation in `openapi.yaml`.

mod attributes;
mod body;
mod route;
mod schema;

use proc_macro::TokenStream;

/// Declares a route at its handler.
#[proc_macro_attribute]
pub fn route(declaration: TokenStream, handler: TokenStream) -> TokenStream {
    finish(route::expand(declaration.into(), handler.into()))
}

/// Derives the reader of a request body and its schema.
#[proc_macro_derive(Body, attributes(body, field))]
pub fn body(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(|input| body::expand(&input)))
}

/// Derives the schema of a response body or of one of its parts from its fields and their serde
/// attributes.
#[proc_macro_derive(Schema, attributes(schema, field))]
pub fn schema(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(|input| schema::expand(&input)))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
