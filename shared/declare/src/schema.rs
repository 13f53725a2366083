use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, Result, Type};

use crate::attributes::{Container, Field, doc, inner, renamed};

/// Implements the traits of the schema for a struct with named fields, a struct with one unnamed
/// field, or an enum. An enum of plain names becomes a list of names. A tagged or untagged enum
/// becomes a choice of objects.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let (ident, container) = (&input.ident, Container::of(&input.attrs)?);
    let (before, generics, after) = input.generics.split_for_impl();
    let (name, text, examples) = (container.name(ident), doc(&input.attrs), &container.examples);
    let (fields, schema, example) = match &input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Named(_)) => (
            Some(members(&data.fields)?),
            quote!(schemas.object::<Self>(#name, #text, false, &[#(#examples),*])),
            quote!(::http_api::contract::example_of::<Self>()),
        ),
        Data::Struct(data) => {
            let field = data.fields.iter().next().ok_or_else(|| syn::Error::new(ident.span(), "has no field"))?;
            let attributes = Field::of(&field.attrs)?;
            let (schema, example) = schema_of(&field.ty, &attributes);
            let named = quote!(schemas.named(#name, |schemas| #schema.about(#text)));
            (None, if container.is_transparent { schema } else { named }, example)
        }
        Data::Enum(data) if data.variants.iter().all(|variant| variant.fields.is_empty()) => {
            let names: Vec<String> = data
                .variants
                .iter()
                .map(|variant| renamed(&variant.ident.to_string(), container.rename_all.as_deref()))
                .collect();
            let first = names.first().cloned().unwrap_or_default();
            (
                None,
                quote!(schemas.named(#name, |_| ::http_api::contract::Node::one_of(&[#(#names),*]).about(#text))),
                quote!(::core::option::Option::Some(::http_api::contract::Node::from(#first))),
            )
        }
        Data::Enum(data) => {
            let mut choices = Vec::new();
            for variant in &data.variants {
                let named = renamed(&variant.ident.to_string(), container.rename_all.as_deref());
                let tag = container.tag.as_ref().map(|tag| {
                    quote!(object.field(#tag, "", ::http_api::contract::Node::one_of(&[#named]), true, ::core::option::Option::Some(::http_api::contract::Node::from(#named)));)
                });
                choices.push(match &variant.fields {
                    Fields::Unnamed(fields) => {
                        let ty = fields.unnamed.iter().map(|field| &field.ty);
                        if tag.is_none() {
                            quote!(#(<#ty as ::http_api::contract::Schema>::schema(schemas))*)
                        } else {
                            quote!(::http_api::contract::choice(|object, schemas| {
                                #tag
                                #(<#ty as ::http_api::contract::Fields>::describe(object, schemas);)*
                            }, schemas))
                        }
                    }
                    fields => {
                        let members = members(fields)?;
                        quote!(::http_api::contract::choice(|object, schemas| { let _ = &schemas; #tag #members }, schemas))
                    }
                });
            }
            (
                None,
                quote!(schemas.named(#name, |schemas| {
                    ::http_api::contract::Node::choice(::std::vec![#(#choices),*]).about(#text)
                        .with_examples(&[#(#examples),*])
                })),
                quote!(::http_api::contract::first_example(&[#(#examples),*])),
            )
        }
        Data::Union(_) => return Err(syn::Error::new(ident.span(), "a union has no schema")),
    };
    let page = container.page.map(|page| {
        quote! {
            fn page() -> ::core::option::Option<&'static str> {
                ::core::option::Option::Some(#page)
            }
        }
    });
    let fields = fields.map(|members| {
        quote! {
            impl #before ::http_api::contract::Fields for #ident #generics #after {
                fn describe(object: &mut ::http_api::contract::ObjectSchema, schemas: &mut ::http_api::contract::Schemas) {
                    #members
                }
            }
        }
    });
    Ok(quote! {
        #fields

        impl #before ::http_api::contract::Schema for #ident #generics #after {
            fn schema(schemas: &mut ::http_api::contract::Schemas) -> ::http_api::contract::Node {
                #schema
            }

            fn example() -> ::core::option::Option<::http_api::contract::Node> {
                #example
            }

            #page
        }
    })
}

/// Returns the code that describes the fields of a response. A field is required unless serde may
/// skip it, and it can be `null` if it is an `Option` that serde does not skip. With
/// `not_null`, its rule says alone whether it can be `null`.
fn members(fields: &Fields) -> Result<TokenStream> {
    let mut members = Vec::new();
    for field in fields {
        let attributes = Field::of(&field.attrs)?;
        let Some(name) = field.ident.as_ref().filter(|_| !attributes.is_skipped) else { continue };
        let (ty, doc) = (&field.ty, doc(&field.attrs));
        if attributes.is_flattened {
            members.push(quote!(<#ty as ::http_api::contract::Fields>::describe(object, schemas);));
            continue;
        }
        let text = attributes.name.clone().unwrap_or_else(|| name.to_string());
        let is_required = !attributes.may_be_absent;
        let optional = inner(ty, "Option");
        let (schema, example) = schema_of(optional.unwrap_or(ty), &attributes);
        let may_be_null = optional.is_some() && is_required && !attributes.is_not_null;
        let schema = if may_be_null { quote!(#schema.or_null()) } else { schema };
        members.push(quote! {
            let schema = #schema;
            object.field(#text, #doc, schema, #is_required, #example);
        });
    }
    Ok(quote!(#(#members)*))
}

/// Returns the code that makes the schema and the example of a field.
pub fn schema_of(ty: &Type, attributes: &Field) -> (TokenStream, TokenStream) {
    let (schema, example) = match &attributes.rule {
        Some(rule) => (
            quote!(::http_api::contract::RuleSchema::schema(&(#rule), schemas)),
            quote!(::http_api::contract::RuleSchema::example(&(#rule))),
        ),
        None => (
            quote!(<#ty as ::http_api::contract::Schema>::schema(schemas)),
            quote!(<#ty as ::http_api::contract::Schema>::example()),
        ),
    };
    (schema, attributes.example(example))
}

pub fn named_fields(input: &DeriveInput) -> Result<&Fields> {
    match &input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Named(_)) => Ok(&data.fields),
        _ => Err(syn::Error::new(input.ident.span(), "a body is a struct with named fields")),
    }
}
