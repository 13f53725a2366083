//! Tests of the page with plots.

use super::report_of;

/// Returns the number of tags of a page. Panics if the page is not well-formed.
fn check_elements(page: &str) -> usize {
    let (mut open, mut elements) = (Vec::<&str>::new(), 0);
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    // The text of a style sheet has no markup.
    let (head, rest) = body.split_once("<style>").unwrap();
    let (_, tail) = rest.split_once("</style>").unwrap();
    for part in [head, tail] {
        for piece in part.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect(piece);
            assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{piece}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
            elements += 1;
        }
    }
    assert_eq!(open, [""; 0]);
    elements
}

#[test]
fn the_page_is_well_formed_and_loads_nothing() {
    let profile = "[routes]\n\"POST /v1/orders\" = 30_000\n\"GET /v1/products/{id}\" = 3_000_000\n\
        [[operations]]\nname = \"<b>\\\"&'\"\nper_day = 9_000\nwrite_bytes = [900]\n";
    for profile in ["", profile] {
        let folder = tempfile::tempdir().unwrap();
        let (path, input) = (folder.path().join("bill.html"), folder.path().join("profile.toml"));
        std::fs::write(&input, profile).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ops"))
            .args(["cost", "--profile", input.to_str().unwrap(), "--html", path.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(output.status.success());
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(check_elements(&page) > 100);
        for loading in ["<script", "src=", "@import", "url(", "<link", "<b>"] {
            assert!(!page.contains(loading), "{loading}");
        }
        assert!(page.contains("prefers-color-scheme:dark"));
        let report = report_of(profile);
        let bars = report.services.len() + report.routes.len() + report.places.len() + report.choices.len();
        assert_eq!(page.matches("<rect ").count(), bars, "a bar for each sum");
    }
}
