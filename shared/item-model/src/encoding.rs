//! Key text: the encoding of values, and why the text sorts as the values do.
//!
//! A key is a list of *parts* joined by `#`. DynamoDB compares strings by their UTF-8 bytes. For
//! range queries the text of keys must have two properties:
//!
//! - Different lists of parts never give the same text.
//! - Text order equals the order of the lists, part by part.
//!
//! Inside a part every byte up to and including `%` (0x25) is written `%HH`. That covers the
//! delimiter `#` (0x23), the upper bound `$` (0x24) and the escape itself. All unescaped bytes are
//! larger than these three. So the text of keys sorts like their parts:
//!
//! - A part that is a prefix of another part sorts first. The shorter part is followed by `#` or by
//!   the end of the text. The longer part continues with `%` or a larger byte.
//! - An escaped byte begins with `%`, so it sorts before every unescaped byte (0x26 and larger).
//! - Two escaped bytes sort by their upper-case hexadecimal digits, which keep the order of the
//!   bytes.
//!
//! The upper bound of all texts that start with `p#` is `p$`. In byte order `$` follows `#`
//! directly, and no key contains `$`. With the bound `p#~`, a query would miss every part that
//! starts with a byte above 0x7E, such as an accented letter.

use crate::instant::Instant;

/// Separates the parts of a key.
pub const DELIMITER: char = '#';
/// Follows [`DELIMITER`] directly in byte order. It ends the range of a prefix.
pub const AFTER_DELIMITER: char = '$';
/// The largest byte that is escaped inside a part.
const LAST_ESCAPED: u8 = 0x25;

/// Appends one part to a key, escaped.
pub fn encode_bytes(part: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in part {
        if byte <= LAST_ESCAPED {
            out.push(b'%');
            // A nibble is below 16, so both lookups always succeed.
            out.extend(HEX.get(usize::from(byte >> 4)));
            out.extend(HEX.get(usize::from(byte & 0x0F)));
        } else {
            out.push(byte);
        }
    }
}

/// Returns one part as key text.
#[must_use]
pub fn encode(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    encode_into(part, &mut text);
    text
}

/// Appends one part as key text.
pub fn encode_into(part: &str, out: &mut String) {
    for character in part.chars() {
        // Escaped bytes are ASCII, so each of them is one character.
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

/// Returns the part that [`encode`] writes as this text, or `None` for text that [`encode`] never
/// writes.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            // `from_str_radix` alone would also accept lower case and a sign.
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

/// Splits a key's text into its decoded parts. Returns `None` if a part is not text that this
/// module writes.
#[must_use]
pub fn split(key: &str) -> Option<Vec<String>> {
    key.split(DELIMITER).map(decode).collect()
}

/// A value that can be a part of a key. The texts of two values must sort like the values.
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

/// Writes twenty digits, enough for every `u64`. With equal widths, text order is numeric order.
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

/// Writes the value plus 2^63 as a `u64`, so that the texts sort like the values.
impl Part for i64 {
    fn write(&self, out: &mut String) {
        (self.cast_unsigned() ^ (1 << 63)).write(out);
    }
}

/// Writes UTC text of fixed width, which sorts by time.
impl Part for Instant {
    fn write(&self, out: &mut String) {
        encode_into(&self.to_string(), out);
    }
}

/// An instant whose text sorts in reverse: ascending text order is newest first.
///
/// It is for a list that must be read forward and begin with its newest item. One Query can then
/// read an item together with the list that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestFirst(pub Instant);

impl Part for NewestFirst {
    fn write(&self, out: &mut String) {
        let mut folded = self.0.as_millis().cast_unsigned() ^ (1 << 63);
        folded = u64::MAX - folded;
        folded.write(out);
    }
}

/// Joins an entity's type prefix and its parts: `BOOK#b1`.
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
