use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, Type};

use crate::attributes::{Container, Field, doc, inner};
use crate::schema::{named_fields, schema_of};

/// Implements `FromBody`, `BodyFields` and the traits of the schema for a struct, or for the type of
/// another crate that has the same fields.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let (ident, container) = (&input.ident, Container::of(&input.attrs)?);
    let (before, generics, after) = input.generics.split_for_impl();
    let target = container.of.as_ref().map_or_else(|| quote!(#ident #generics), |of| quote!(#of));
    let (mut reads, mut completes, mut members, mut empty) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for field in named_fields(input)? {
        let attributes = Field::of(&field.attrs)?;
        let Some(name) = &field.ident else { continue };
        let text = attributes.name.clone().unwrap_or_else(|| name.to_string());
        let (ty, doc) = (&field.ty, doc(&field.attrs));
        if attributes.is_flattened {
            reads.push(quote! {
                let #name = <#ty as ::http_api::contract::BodyFields>::read_fields(object, context);
            });
            completes.push(quote!(#name: #name?));
            members.push(quote!(<#ty as ::http_api::contract::Fields>::describe(object, schemas);));
            continue;
        }
        let read = |ty: &Type| match &attributes.rule {
            Some(rule) => quote!(|value| ::http_api::contract::Rule::read(&(#rule), value, context)),
            None => quote!(|value| <#ty as ::http_api::contract::FromBody>::read(value, context)),
        };
        let (core, reader, missing, is_required, is_nullable) = if let Some(core) = inner(ty, "FieldPatch") {
            let read = read(core);
            empty.push(quote!(!self.#name.is_given()));
            (core, quote!(object.changed(#text, #read)), quote!(::http_api::FieldPatch::Keep), false, true)
        } else if let Some(core) = inner(ty, "Option") {
            let read = read(core);
            empty.push(quote!(self.#name.is_none()));
            let reader = if attributes.is_not_null {
                quote!(object.replaced(#text, #read))
            } else {
                quote!(object.optional(#text, #read))
            };
            (core, reader, quote!(::core::option::Option::None), false, !attributes.is_not_null)
        } else if let Some(default) = &attributes.default {
            let read = read(ty);
            let default =
                default.as_ref().map_or_else(|| quote!(::core::default::Default::default()), |value| quote!(#value));
            (
                ty,
                quote!(object.optional(#text, #read).map(|given| given.unwrap_or_else(|| #default))),
                default,
                false,
                true,
            )
        } else {
            let read = read(ty);
            (ty, quote!(object.required(#text, #read)), quote!(), true, false)
        };
        reads.push(if attributes.is_for_staff {
            quote! {
                let #name = if context.is_staff() { #reader } else { ::core::option::Option::Some(#missing) };
            }
        } else {
            quote!(let #name = #reader;)
        });
        completes.push(quote!(#name: #name?));
        let (schema, example) = schema_of(core, &attributes);
        let schema = if is_nullable { quote!(#schema.or_null()) } else { schema };
        let doc = match &attributes.default {
            Some(Some(default)) => quote!(&::http_api::contract::with_default(#doc, &(#default))),
            Some(None) => {
                quote!(&::http_api::contract::with_default(#doc, &<#ty as ::core::default::Default>::default()))
            }
            None => quote!(#doc),
        };
        members.push(quote! {
            let schema = #schema;
            object.field(#text, #doc, schema, #is_required, #example);
        });
    }
    let checks = container.checks.iter().map(|(fields, check)| {
        quote! {
            if let (#(::core::option::Option::Some(#fields),)*) = (#(&#fields,)*)
                && let ::core::result::Result::Err(invalid) = (#check)(#(#fields),*)
            {
                object.add(invalid);
            }
        }
    });
    let refuse_empty = container.is_not_empty.then(|| {
        members.push(quote!(object.not_empty();));
        quote! {
            fn complete(self) -> ::core::result::Result<Self, ::http_api::Invalid> {
                if #(#empty)&&* {
                    return ::core::result::Result::Err(::http_api::Invalid::new("must change at least one field"));
                }
                ::core::result::Result::Ok(self)
            }
        }
    });
    let (name, text, examples) = (container.name(ident), doc(&input.attrs), &container.examples);
    Ok(quote! {
        impl #before ::http_api::contract::FromBody for #target #after {
            fn read(
                value: ::http_api::json::Value<'_>,
                context: &::http_api::contract::Context<'_>,
            ) -> ::core::result::Result<Self, ::http_api::Invalid> {
                let mut object = value.object()?;
                let read = <Self as ::http_api::contract::BodyFields>::read_fields(&mut object, context);
                ::http_api::contract::BodyFields::complete(object.finish(read)?)
            }
        }

        impl #before ::http_api::contract::BodyFields for #target #after {
            fn read_fields(
                object: &mut ::http_api::Object<'_>,
                context: &::http_api::contract::Context<'_>,
            ) -> ::core::option::Option<Self> {
                let _ = context;
                #(#reads)*
                #(#checks)*
                ::core::option::Option::Some(Self { #(#completes),* })
            }

            #refuse_empty
        }

        impl #before ::http_api::contract::Fields for #target #after {
            fn describe(object: &mut ::http_api::contract::ObjectSchema, schemas: &mut ::http_api::contract::Schemas) {
                #(#members)*
            }
        }

        impl #before ::http_api::contract::Schema for #target #after {
            fn schema(schemas: &mut ::http_api::contract::Schemas) -> ::http_api::contract::Node {
                schemas.object::<Self>(#name, #text, true, &[#(#examples),*])
            }

            fn example() -> ::core::option::Option<::http_api::contract::Node> {
                ::http_api::contract::example_of::<Self>()
            }
        }
    })
}
