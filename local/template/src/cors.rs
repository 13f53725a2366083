use crate::TemplateError;
use crate::section::Section;

/// The `CorsConfiguration` of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Origins whose pages may call the API.
    pub origins: Origins,
    /// Allowed methods, in upper case.
    pub methods: Vec<String>,
    /// Allowed headers, in lower case.
    pub headers: Vec<String>,
    /// Response headers that a page may read, in lower case.
    pub exposed: Vec<String>,
    /// Seconds for which a browser may cache this configuration.
    pub max_age: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// All origins.
    Any,
    /// These origins, such as `https://shop.example.com`.
    These(Vec<String>),
}

/// Reads the `CorsConfiguration`. Returns `None` if the API has no `CorsConfiguration`.
pub(crate) fn read(api: &Section) -> Result<Option<Cors>, TemplateError> {
    let Some(settings) = api.get("CorsConfiguration")? else {
        return Ok(None);
    };
    settings.only(&["AllowOrigins", "AllowMethods", "AllowHeaders", "ExposeHeaders", "MaxAge"])?;
    let names = |key: &str, change: fn(&str) -> String| -> Result<Vec<String>, TemplateError> {
        let Some(section) = settings.get(key)? else { return Ok(Vec::new()) };
        let names = section.texts()?;
        match names.iter().find(|name| name.contains('*')) {
            Some(pattern) => Err(section.error(format!("{pattern}: list each name; only AllowOrigins may be *"))),
            None => Ok(names.iter().map(|name| change(name)).collect()),
        }
    };
    let max_age = match settings.get("MaxAge")? {
        Some(seconds) => Some(seconds.number::<u32>(0..=86_400)?),
        None => None,
    };
    Ok(Some(Cors {
        origins: read_origins(&settings.require("AllowOrigins")?)?,
        methods: names("AllowMethods", str::to_ascii_uppercase)?,
        headers: names("AllowHeaders", str::to_ascii_lowercase)?,
        exposed: names("ExposeHeaders", str::to_ascii_lowercase)?,
        max_age,
    }))
}

/// Reads the origins: a list, or a parameter of type `CommaDelimitedList`.
fn read_origins(section: &Section) -> Result<Origins, TemplateError> {
    let texts = section.texts()?;
    let origins: Vec<&str> = texts.iter().flat_map(|text| text.split(',')).map(str::trim).collect();
    if origins == ["*"] {
        return Ok(Origins::Any);
    }
    for origin in &origins {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        // An origin has a scheme, a host and a port. Browsers never send an origin with a path or a
        // final slash.
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '*', ' '])) {
            return Err(section.error(format!("{origin} is no origin such as https://shop.example.com")));
        }
    }
    Ok(Origins::These(origins.into_iter().map(str::to_owned).collect()))
}
