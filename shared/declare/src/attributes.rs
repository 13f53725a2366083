//! The attributes of a struct, an enum and a field, as the macros read them.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, Expr, Ident, LitStr, Meta, Result, Token, Type};

/// Returns the doc comment, one line for each of its lines.
pub fn doc(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Ok(text) = syn::parse2::<LitStr>(pair.value.to_token_stream())
        {
            let text = text.value();
            lines.push(text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned());
        }
    }
    lines.join("\n")
}

/// The attribute `#[field(…)]`, and the serde attributes that change a field of a response.
#[derive(Default)]
pub struct Field {
    pub rule: Option<Expr>,
    /// The example as JSON.
    pub example: Option<String>,
    /// Whether the example of the object has no such member.
    pub is_left_out: bool,
    /// The default, which is `Default::default()` if the attribute has no value.
    pub default: Option<Option<Expr>>,
    pub is_for_staff: bool,
    pub is_not_null: bool,
    pub is_flattened: bool,
    pub is_skipped: bool,
    pub may_be_absent: bool,
    pub name: Option<String>,
}

impl Field {
    pub fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut field = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("field") {
                each_name(attribute, |name, input| field.read(name, input))?;
            } else if attribute.path().is_ident("serde") {
                each_name(attribute, |name, input| field.read_serde(name, input))?;
            }
        }
        Ok(field)
    }

    fn read(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "rule" => self.rule = Some(value(input)?),
            "example" => self.example = Some(json(input)?),
            "left_out" => self.is_left_out = true,
            "default" if input.peek(Token![=]) => self.default = Some(Some(value(input)?)),
            "default" => self.default = Some(None),
            "staff" => self.is_for_staff = true,
            "not_null" => self.is_not_null = true,
            "flatten" => self.is_flattened = true,
            _ => return Err(syn::Error::new(name.span(), "is not an attribute of a field")),
        }
        Ok(())
    }

    fn read_serde(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        let text = text(input)?;
        match name.to_string().as_str() {
            "skip_serializing_if" => self.may_be_absent = true,
            "flatten" => self.is_flattened = true,
            "skip" | "skip_serializing" => self.is_skipped = true,
            "rename" => self.name = text,
            _ => {}
        }
        Ok(())
    }

    /// Returns the code that makes the example.
    pub fn example(&self, otherwise: TokenStream) -> TokenStream {
        match &self.example {
            _ if self.is_left_out => quote!(::core::option::Option::None),
            Some(json) => quote!(::http_api::contract::Node::json(#json)),
            None => otherwise,
        }
    }
}

/// The attributes `#[body(…)]` and `#[schema(…)]` of a type, and its serde attributes.
#[derive(Default)]
pub struct Container {
    pub name: Option<String>,
    /// The name of the schema of a page, if it is not the type's name and `Page`.
    pub page: Option<String>,
    /// The type of another crate whose fields the struct declares.
    pub of: Option<Type>,
    /// Further examples as JSON.
    pub examples: Vec<String>,
    /// Rules over several fields: the fields, and the function that checks them.
    pub checks: Vec<(Vec<Ident>, Expr)>,
    pub is_not_empty: bool,
    pub tag: Option<String>,
    pub is_transparent: bool,
    pub rename_all: Option<String>,
}

impl Container {
    pub fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut container = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("body") || attribute.path().is_ident("schema") {
                each_name(attribute, |name, input| container.read(name, input))?;
            } else if attribute.path().is_ident("serde") {
                each_name(attribute, |name, input| container.read_serde(name, input))?;
            }
        }
        Ok(container)
    }

    fn read(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "name" => self.name = Some(value::<LitStr>(input)?.value()),
            "page" => self.page = Some(value::<LitStr>(input)?.value()),
            "of" => self.of = Some(value(input)?),
            "example" => self.examples.push(json(input)?),
            "not_empty" => self.is_not_empty = true,
            "check" => {
                let fields;
                syn::parenthesized!(fields in input);
                let fields = fields.parse_terminated(Ident::parse_any, Token![,])?;
                self.checks.push((fields.into_iter().collect(), value(input)?));
            }
            _ => return Err(syn::Error::new(name.span(), "is not an attribute of a body or schema")),
        }
        Ok(())
    }

    fn read_serde(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        let text = text(input)?;
        match name.to_string().as_str() {
            "tag" => self.tag = text,
            "transparent" => self.is_transparent = true,
            "rename_all" => self.rename_all = text,
            _ => {}
        }
        Ok(())
    }

    /// Returns the name of the schema: the name of the type without `View`.
    pub fn name(&self, ident: &Ident) -> String {
        let ident = ident.to_string();
        self.name.clone().unwrap_or_else(|| ident.strip_suffix("View").unwrap_or(&ident).to_owned())
    }
}

/// Calls a function for each name of an attribute. The function reads what follows the name.
fn each_name(attribute: &Attribute, mut read: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>) -> Result<()> {
    attribute.parse_args_with(|input: ParseStream<'_>| {
        while !input.is_empty() {
            read(&input.call(Ident::parse_any)?, input)?;
            comma(input)?;
        }
        Ok(())
    })
}

/// Reads `= "text"`, if it is there.
fn text(input: ParseStream<'_>) -> Result<Option<String>> {
    if input.peek(Token![=]) { Ok(Some(value::<LitStr>(input)?.value())) } else { Ok(None) }
}

/// Reads `= value`.
pub fn value<T: syn::parse::Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

pub fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// Reads `= json`, where the JSON ends at the next comma. Its tokens are those of Rust.
fn json(input: ParseStream<'_>) -> Result<String> {
    input.parse::<Token![=]>()?;
    let mut json = String::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        json += &joined(input.parse()?);
    }
    Ok(json)
}

/// Returns the tokens without spaces between them, which JSON forbids in a negative number.
fn joined(tree: TokenTree) -> String {
    match tree {
        TokenTree::Group(group) => {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            let inner: String = group.stream().into_iter().map(joined).collect();
            format!("{open}{inner}{close}")
        }
        tree => tree.to_string(),
    }
}

/// Returns `T` of `Option<T>`, or of another type with this name.
pub fn inner<'t>(ty: &'t Type, wrapper: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == wrapper)?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Returns a variant's name in snake case, as `rename_all = "snake_case"` does, or in another case.
pub fn renamed(name: &str, rule: Option<&str>) -> String {
    let separator = match rule {
        Some("snake_case") => '_',
        Some("kebab-case") => '-',
        Some("lowercase") => return name.to_lowercase(),
        _ => return name.to_owned(),
    };
    let mut text = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            text.push(separator);
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Parses tokens with a function that reads a [`ParseStream`].
pub fn parse<T>(tokens: TokenStream, read: impl FnOnce(ParseStream<'_>) -> Result<T>) -> Result<T> {
    read.parse2(tokens)
}
