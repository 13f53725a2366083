use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Expr, FnArg, Ident, ItemFn, LitInt, LitStr, Path, Result, Token, Type};

use crate::attributes::{comma, doc, parse, value};

#[derive(Default)]
struct Declaration {
    key: String,
    id: String,
    who: String,
    task: String,
    path: Vec<TokenStream>,
    parameters: Vec<TokenStream>,
    body: Option<Type>,
    is_lines: bool,
    answers: Vec<TokenStream>,
    refuses: Vec<TokenStream>,
    /// The public specification that describes the route instead of `openapi.yaml`.
    spec: Option<String>,
    /// The function that writes the route's errors.
    errors: Option<Path>,
    always: bool,
}

/// The parameters with a secret that gives access, instead of the caller's token.
const SECRETS: [&str; 2] = ["CartToken", "OrderToken"];

/// Returns the handler, and a module of the same name with the route and its operation.
pub fn expand(declaration: TokenStream, handler: TokenStream) -> Result<TokenStream> {
    let handler: ItemFn = syn::parse2(handler)?;
    let Declaration { key, id, who, task, path, parameters, body, is_lines, answers, refuses, spec, errors, always } =
        parse(declaration, read)?;
    let (name, visibility, text) = (&handler.sig.ident, &handler.vis, doc(&handler.attrs));
    let state = match handler.sig.inputs.first() {
        Some(FnArg::Typed(argument)) => match &*argument.ty {
            Type::Reference(reference) => reference.elem.clone(),
            _ => return Err(syn::Error::new(name.span(), "the first argument is a reference to the state")),
        },
        _ => return Err(syn::Error::new(name.span(), "a handler has the state and the request as arguments")),
    };
    let visibility = match visibility {
        syn::Visibility::Inherited => quote!(pub(crate)),
        visibility => quote!(#visibility),
    };
    // A guest's cart and a guest's order are private, although they need no caller's token.
    // So is all that a protocol of agents serves, except its description.
    let is_public = who == "any"
        && key.starts_with("GET ")
        && (spec.is_none() || key.starts_with("GET /.well-known/"))
        && !parameters.iter().any(|known| SECRETS.iter().any(|secret| known.to_string().contains(secret)));
    let mut modes = if always { quote!(.always()) } else { quote!() };
    if is_public {
        modes.extend(quote!(.public()));
    }
    if let Some(errors) = errors {
        modes.extend(quote!(.speaking(#errors)));
    }
    let spec =
        spec.map_or_else(|| quote!(::core::option::Option::None), |spec| quote!(::core::option::Option::Some(#spec)));
    let who = Ident::new(&camel(&who), Span::call_site());
    let body = body.map_or_else(
        || quote!(::core::option::Option::None),
        |body| quote!(::core::option::Option::Some(<#body as ::http_api::contract::Schema>::schema)),
    );
    Ok(quote! {
        #handler

        #visibility mod #name {
            #[allow(unused_imports)]
            use super::*;

            #[must_use]
            pub fn route<S: ::http_api::Has<#state> + ::core::marker::Sync>() -> ::http_api::Route<S> {
                ::http_api::Route::<S>::new(#key, |state, request| {
                    ::std::boxed::Box::pin(super::#name(state.part(), request))
                })#modes
            }

            #[must_use]
            pub fn operation() -> ::http_api::contract::Operation {
                ::http_api::contract::Operation {
                    key: #key,
                    id: #id,
                    who: ::http_api::contract::Who::#who,
                    task: #task,
                    doc: #text,
                    path: ::std::vec![#(#path),*],
                    parameters: ::std::vec![#(#parameters),*],
                    body: #body,
                    is_lines: #is_lines,
                    answers: ::std::vec![#(#answers),*],
                    refuses: &[#(#refuses),*],
                    spec: #spec,
                }
            }
        }
    })
}

fn read(input: ParseStream<'_>) -> Result<Declaration> {
    let mut declaration = Declaration::default();
    let method: Ident = input.parse()?;
    declaration.key = format!("{method} {}", input.parse::<LitStr>()?.value());
    comma(input)?;
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        match name.to_string().as_str() {
            "id" => declaration.id = value::<LitStr>(input)?.value(),
            "who" => declaration.who = value::<Ident>(input)?.to_string(),
            "task" => declaration.task = value::<LitStr>(input)?.value(),
            "body" => declaration.body = Some(value(input)?),
            "lines" => (declaration.body, declaration.is_lines) = (Some(value(input)?), true),
            "always" => declaration.always = true,
            "spec" => declaration.spec = Some(value::<LitStr>(input)?.value()),
            "errors" => declaration.errors = Some(value(input)?),
            "path" => {
                let names;
                syn::parenthesized!(names in input);
                declaration.path = names.parse_terminated(segment, Token![,])?.into_iter().collect();
            }
            "parameters" => {
                let list;
                syn::parenthesized!(list in input);
                declaration.parameters = list.parse_terminated(parameter, Token![,])?.into_iter().collect();
            }
            "answers" => {
                let list;
                syn::parenthesized!(list in input);
                declaration.answers = list.parse_terminated(answer, Token![,])?.into_iter().collect();
            }
            "refuses" => {
                let list;
                syn::parenthesized!(list in input);
                declaration.refuses = list.parse_terminated(refusal, Token![,])?.into_iter().collect();
            }
            _ => return Err(syn::Error::new(name.span(), "is not a part of a route")),
        }
        comma(input)?;
    }
    Ok(declaration)
}

/// Reads a parameter of the path: `name: Id`, `name: Id = "description"`, or the name of a parameter
/// that several routes share.
fn segment(input: ParseStream<'_>) -> Result<TokenStream> {
    let name = input.call(Ident::parse_any)?.to_string();
    if !input.peek(Token![:]) {
        return Ok(quote!(::http_api::contract::Parameter::Shared(#name)));
    }
    input.parse::<Token![:]>()?;
    let ty: Ident = input.parse()?;
    let text = if input.peek(Token![=]) { value::<LitStr>(input)?.value() } else { String::new() };
    let type_name = ty.to_string();
    Ok(quote! {
        ::http_api::contract::Parameter::Path {
            name: #name, ty: #type_name, doc: #text,
            schema: <#ty as ::http_api::contract::Schema>::schema,
        }
    })
}

/// Reads the name of a parameter that several routes share. A query parameter of this route is
/// `name: Type = "description"`, or `name = rule "description"`. `required` may precede the name.
fn parameter(input: ParseStream<'_>) -> Result<TokenStream> {
    let is_required = input.peek2(Ident::peek_any);
    if is_required {
        input.parse::<Ident>()?;
    }
    let name = input.call(Ident::parse_any)?.to_string();
    if input.peek(Token![=]) {
        let (rule, text): (Expr, LitStr) = (value(input)?, input.parse()?);
        return Ok(quote! {
            ::http_api::contract::Parameter::Query {
                name: #name, doc: #text, is_required: #is_required,
                schema: |schemas| ::http_api::contract::RuleSchema::schema(&(#rule), schemas),
            }
        });
    }
    if !input.peek(Token![:]) {
        return Ok(quote!(::http_api::contract::Parameter::Shared(#name)));
    }
    input.parse::<Token![:]>()?;
    let ty: Type = input.parse()?;
    let text = value::<LitStr>(input)?;
    Ok(quote! {
        ::http_api::contract::Parameter::Query {
            name: #name, doc: #text, is_required: #is_required,
            schema: <#ty as ::http_api::contract::Schema>::schema,
        }
    })
}

/// Reads `201 = Type "description" [Header, …]`.
fn answer(input: ParseStream<'_>) -> Result<TokenStream> {
    let status: LitInt = input.parse()?;
    let ty: Type = value(input)?;
    let text: LitStr = input.parse()?;
    let mut headers = Vec::new();
    if input.peek(syn::token::Bracket) {
        let list;
        syn::bracketed!(list in input);
        headers = list.parse_terminated(Ident::parse_any, Token![,])?.iter().map(Ident::to_string).collect();
    }
    Ok(quote! {
        ::http_api::contract::Answer {
            status: #status, doc: #text, headers: &[#(#headers),*],
            schema: <#ty as ::http_api::contract::Schema>::schema,
        }
    })
}

/// Reads the name of an error code, and the reason if there is one.
fn refusal(input: ParseStream<'_>) -> Result<TokenStream> {
    let name: Ident = input.parse()?;
    let code = Ident::new(&camel(&name.to_string()), name.span());
    let text = if input.peek(Token![=]) { value::<LitStr>(input)?.value() } else { String::new() };
    Ok(quote!((::http_api::Code::#code, #text)))
}

fn camel(name: &str) -> String {
    let part =
        |part: &str| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1)).collect::<String>();
    name.split('_').map(part).collect()
}
