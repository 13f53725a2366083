//! Encodes names as one segment of a URL. The names are joined by `~`. Inside a name, every byte
//! outside `A-Z a-z 0-9 -` is written `_HH`.

#[must_use]
pub fn encode(names: &[String]) -> String {
    names.iter().map(|name| encode_name(name)).collect::<Vec<_>>().join("~")
}

/// Decodes the names of a segment. Returns [`None`] for text that [`encode`] never writes, so that
/// each resource has only one URL.
#[must_use]
pub fn decode(segment: &str) -> Option<Vec<String>> {
    segment.split('~').map(decode_name).collect()
}

fn encode_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("_{byte:02X}"));
        }
    }
    out
}

fn decode_name(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'_' {
            let (digits, tail) = tail.split_at_checked(2)?;
            rest = tail;
            out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        } else if byte.is_ascii_alphanumeric() || byte == b'-' {
            rest = tail;
            out.push(byte);
        } else {
            return None;
        }
    }
    let name = String::from_utf8(out).ok()?;
    // `_41` for `A`, or lower-case hexadecimal digits, would be a second URL of the same resource.
    (encode_name(&name) == text).then_some(name)
}
