//! How values become key text, and why the text sorts as the values do.
//!
//! A key is a list of *parts* joined by `#`. DynamoDB compares strings by their UTF-8 bytes, so two
//! things must hold for every range query in this crate: different lists of parts never give the same
//! text, and text order equals the order of the lists, part by part.
//!
//! Inside a part every byte up to and including `%` (0x25) is written `%HH`. That covers the delimiter
//! `#` (0x23), the upper bound `$` (0x24) and the escape itself, so what is left unescaped is larger than
//! all three. A part that is a prefix of another therefore sorts first (`#` or the end of the text against
//! `%` or more), an escaped byte sorts below every unescaped one (`%` against 0x26 and up), and two escaped
//! bytes sort by their upper-case hexadecimal digits, which keep the order of the bytes.
//!
//! The open upper bound of everything that starts with `p#` is `p$`: `$` follows `#` directly and can stand
//! nowhere else. A bound such as `p#~` would lose every part that starts with a byte above 0x7E, which is to
//! say most of the world's scripts.

use crate::instant::Instant;

/// Separates the parts of a key.
pub const DELIMITER: char = '#';
/// Follows [`DELIMITER`] directly in byte order; closes the range over a prefix.
pub const AFTER_DELIMITER: char = '$';
/// The largest byte that is written escaped inside a part.
const LAST_ESCAPED: u8 = 0x25;

/// Appends one part to a key, escaped.
pub fn encode_bytes(part: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in part {
        if byte <= LAST_ESCAPED {
            out.push(b'%');
            // A nibble is below 16, so both look-ups always succeed.
            out.extend(HEX.get(usize::from(byte >> 4)));
            out.extend(HEX.get(usize::from(byte & 0x0F)));
        } else {
            out.push(byte);
        }
    }
}

/// One part as key text.
#[must_use]
pub fn encode(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    encode_into(part, &mut text);
    text
}

/// Appends one part as key text.
pub fn encode_into(part: &str, out: &mut String) {
    for character in part.chars() {
        // Escaped bytes are ASCII, so they are characters of their own in UTF-8.
        match u8::try_from(character) {
            Ok(byte) if byte <= LAST_ESCAPED => {
                let mut escaped = Vec::with_capacity(3);
                encode_bytes(&[byte], &mut escaped);
                out.extend(escaped.into_iter().map(char::from));
            }
            _ => out.push(character),
        }
    }
}

/// The part that [`encode`] was given, or `None` for text that [`encode`] never writes.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            // Said here, because the conversion takes lower case and a sign as well.
            if !digits.iter().all(|digit| digit.is_ascii_digit() || digit.is_ascii_uppercase()) {
                return None;
            }
            let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            if byte > LAST_ESCAPED {
                return None;
            }
            out.push(byte);
            rest = tail;
        } else if byte <= LAST_ESCAPED {
            return None;
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    String::from_utf8(out).ok()
}

/// The parts of a key's text, decoded; `None` if some part is not one that this module wrote.
#[must_use]
pub fn split(key: &str) -> Option<Vec<String>> {
    key.split(DELIMITER).map(decode).collect()
}

/// What can stand as a part of a key: its text must sort as the value does.
pub trait Part {
    /// Appends the part, already escaped.
    fn write(&self, out: &mut String);
}

impl Part for str {
    fn write(&self, out: &mut String) {
        encode_into(self, out);
    }
}

impl Part for &str {
    fn write(&self, out: &mut String) {
        encode_into(self, out);
    }
}

impl Part for String {
    fn write(&self, out: &mut String) {
        encode_into(self, out);
    }
}

/// Twenty digits hold every `u64`, and equal width makes text order numeric order.
impl Part for u64 {
    fn write(&self, out: &mut String) {
        out.push_str(&format!("{self:020}"));
    }
}

impl Part for u32 {
    fn write(&self, out: &mut String) {
        u64::from(*self).write(out);
    }
}

/// The sign bit is folded in: adding 2^63 moves the whole range of `i64` onto that of `u64`, in order.
impl Part for i64 {
    fn write(&self, out: &mut String) {
        (self.cast_unsigned() ^ (1 << 63)).write(out);
    }
}

/// Fixed-width UTC, which sorts as time passes.
impl Part for Instant {
    fn write(&self, out: &mut String) {
        encode_into(&self.to_string(), out);
    }
}

/// An instant in reverse: ascending text order is newest first. Needed where a collection is read forward
/// and the newest must come first, because another collection of the same partition is read backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestFirst(pub Instant);

impl Part for NewestFirst {
    fn write(&self, out: &mut String) {
        let mut folded = self.0.as_millis().cast_unsigned() ^ (1 << 63);
        folded = u64::MAX - folded;
        folded.write(out);
    }
}

/// Joins an entity's type prefix and its parts: `CUSTOMER#c1`.
#[must_use]
pub fn join(prefix: &str, parts: &[&dyn Part]) -> String {
    let mut text = String::with_capacity(64);
    text.push_str(prefix);
    for part in parts {
        text.push(DELIMITER);
        part.write(&mut text);
    }
    text
}
