//! Properties of characters that two texts can differ in without looking different.

/// Returns whether a character is a `Default_Ignorable_Code_Point` in Unicode 17. Reserved code
/// points with the property are included.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Returns whether a reader sees nothing at the place of a character. The blank pattern of Braille
/// is a symbol for Unicode, but it has no dots.
#[must_use]
pub fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || is_invisible(c) || c == '\u{2800}'
}
