use tantivy::tokenizer::TextAnalyzer;

use super::analysis::tokens;
use super::multi_match::Mark;

/// Returns the text as HTML, with each matching word in `<em>`. Returns `None` if no word of the
/// text matches.
pub(super) fn highlight(analyzer: &TextAnalyzer, text: &str, marks: &[&Mark]) -> Option<String> {
    let mut html = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for token in tokens(analyzer, text) {
        if marks.iter().any(|mark| mark.fits(&token.text)) {
            escape(text.get(done..token.offset_from)?, &mut html);
            html.push_str("<em>");
            escape(text.get(token.offset_from..token.offset_to)?, &mut html);
            html.push_str("</em>");
            done = token.offset_to;
        }
    }
    if done == 0 {
        return None;
    }
    escape(text.get(done..)?, &mut html);
    Some(html)
}

/// Escapes HTML as the engine's encoder `html` does.
fn escape(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '"' => html.push_str("&quot;"),
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\'' => html.push_str("&#x27;"),
            '/' => html.push_str("&#x2F;"),
            c => html.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use tantivy::tokenizer::{LowerCaser, SimpleTokenizer};

    use super::*;

    #[test]
    fn matching_words_are_marked_and_the_whole_text_is_escaped() {
        let analyzer = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build();
        let mark = |token: &str, edits| Mark { field: 0, token: token.to_owned(), edits };
        let (ice, cube) = (mark("ice", 0), mark("cubde", 1));
        let marked = highlight(&analyzer, "ICE - CRUSHED/CUBED <b>", &[&ice, &cube]);
        assert_eq!(marked.as_deref(), Some("<em>ICE</em> - CRUSHED&#x2F;<em>CUBED</em> &lt;b&gt;"));
        assert_eq!(highlight(&analyzer, "MILK", &[&ice]), None);
    }
}
