//! Parses a page of ListObjectsV2: XML with URL-encoded names.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use aws_smithy_xml::decode::{Document, ScopedDecoder, try_data};
use percent_encoding::percent_decode_str;

use super::{ObjectInfo, ObjectPage};

/// Parses a page. Returns `None` for any other document.
pub(super) fn parse(body: &[u8]) -> Option<ObjectPage> {
    let text = std::str::from_utf8(body).ok()?;
    let mut document = Document::new(text);
    let mut root = document.root_element().ok()?;
    // The decoder would accept a truncated page as a complete, shorter page.
    if !root.start_el().matches("ListBucketResult") || !text.trim_end().ends_with("</ListBucketResult>") {
        return None;
    }
    let (mut items, mut more, mut count) = (Vec::new(), None, None::<usize>);
    while let Some(mut tag) = root.next_tag() {
        match tag.start_el().local() {
            "Contents" => items.push(object(tag)?),
            "IsTruncated" => more = try_data(&mut tag).ok()?.parse().ok(),
            "KeyCount" => count = try_data(&mut tag).ok()?.parse().ok(),
            _ => {}
        }
    }
    let next = items.last().filter(|_| more == Some(true)).map(|last| last.name.clone());
    (more.is_some() && count.is_none_or(|count| count == items.len())).then_some(ObjectPage { items, next })
}

fn object(mut contents: ScopedDecoder<'_, '_>) -> Option<ObjectInfo> {
    let (mut name, mut size, mut modified) = (None, 0, SystemTime::UNIX_EPOCH);
    while let Some(mut tag) = contents.next_tag() {
        match tag.start_el().local() {
            "Key" => name = Some(decoded(&try_data(&mut tag).ok()?)?),
            "Size" => size = try_data(&mut tag).ok()?.parse().ok()?,
            "LastModified" => modified = instant(&try_data(&mut tag).ok()?)?,
            _ => {}
        }
    }
    Some(ObjectInfo { name: name?, size, modified })
}

/// Decodes a name. S3 uses form encoding, where a plus sign is a space.
fn decoded(name: &str) -> Option<String> {
    let name = name.replace('+', " ");
    percent_decode_str(&name).decode_utf8().ok().map(Cow::into_owned)
}

fn instant(text: &str) -> Option<SystemTime> {
    let at = DateTime::from_str(text, Format::DateTime).ok()?;
    let since = Duration::new(u64::try_from(at.secs()).ok()?, at.subsec_nanos());
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    /// The format is from the API reference, `ListObjectsV2`.
    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name><Prefix/><StartAfter>a%2F</StartAfter><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys>
  <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>
  <Contents>
    <Key>a/b+c%2Bd%0A%C3%A4%26amp%3B</Key><LastModified>2026-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass>
    <Owner><ID>1</ID></Owner><ChecksumAlgorithm>SHA256</ChecksumAlgorithm>
  </Contents>
  <Contents><Key>b</Key><LastModified>1970-01-01T00:00:01Z</LastModified><Size>0</Size></Contents>
</ListBucketResult>"#;

    #[test]
    fn names_are_decoded_and_a_list_that_continues_has_a_next_page() {
        let page = parse(PAGE.as_bytes()).unwrap();
        let names: Vec<&str> = page.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!((names, page.next.as_deref()), (vec!["a/b c+d\nä&amp;", "b"], Some("b")));
        assert_eq!((page.items[0].size, page.items[1].size), (434_234, 0));
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!((page.items[0].modified, page.items[1].modified), (at(1_791_827_430), at(1)));
        let last = parse(PAGE.replace("<IsTruncated>true", "<IsTruncated>false").as_bytes()).unwrap();
        assert_eq!((last.items.len(), last.next), (2, None));
    }

    #[test]
    fn an_invalid_page_is_refused_and_not_read_as_an_empty_page() {
        let replaced = |from: &str, to: &str| PAGE.replace(from, to);
        for text in [
            String::new(),
            "<html></html>".to_owned(),
            "<Error><Code>SlowDown</Code></Error>".to_owned(),
            "<ListBucketResult></ListBucketResult>".to_owned(),
            replaced("<Key>b</Key>", ""),
            replaced("<Size>0<", "<Size>many<"),
            replaced("1970-01-01T00", "1970-01-01 00"),
            replaced("%C3%A4", "%C3"),
            replaced("<KeyCount>2", "<KeyCount>3"),
            replaced("IsTruncated>true", "IsTruncated>perhaps"),
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(&[0xff]), None);
    }

    #[test]
    fn a_truncated_page_is_refused() {
        for length in 0..PAGE.len() - 1 {
            if let Some(text) = PAGE.get(..length) {
                assert_eq!(parse(text.as_bytes()), None, "{text}");
            }
        }
    }
}
