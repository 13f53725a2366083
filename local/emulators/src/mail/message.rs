use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// SES's maximum size of a message. Here it applies to subject and body together.
const MAX_BYTES: usize = 40 * 1024 * 1024;
const MAX_RECIPIENTS: usize = 50;
const MAX_TAG: usize = 256;
const MAX_SET: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub message_id: String,
    pub from: String,
    pub to: Vec<String>,
    pub subject: String,
    /// The body as text. Empty if the message has only HTML.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_set: Option<String>,
    pub tags: BTreeMap<String, String>,
    /// Time of acceptance: RFC 3339, whole seconds.
    pub at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct SendEmail {
    from_email_address: Option<String>,
    destination: Option<Destination>,
    content: Content,
    configuration_set_name: Option<String>,
    #[serde(default)]
    email_tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Destination {
    #[serde(default)]
    to_addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Content {
    simple: Simple,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Simple {
    subject: Text,
    body: Body,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Body {
    text: Option<Text>,
    html: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Text {
    data: String,
    charset: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Tag {
    name: String,
    value: String,
}

impl SendEmail {
    pub(super) fn message(self, message_id: String, at: String) -> Result<Mail, String> {
        let from = self.from_email_address.ok_or("Missing required field FromEmailAddress.")?;
        address(&from)?;
        let to = self.destination.map(|destination| destination.to_addresses).unwrap_or_default();
        match to.len() {
            0 => return Err("Destination must have at least one recipient.".to_owned()),
            count if count > MAX_RECIPIENTS => return Err("Recipient count exceeds 50.".to_owned()),
            _ => to.iter().try_for_each(|to| address(to))?,
        }
        let Simple { subject, body } = self.content.simple;
        let subject = subject.data()?;
        if subject.is_empty() {
            return Err("Subject must not be empty.".to_owned());
        }
        let (text, html) = (body.text.map(Text::data).transpose()?, body.html.map(Text::data).transpose()?);
        if text.is_none() && html.is_none() {
            return Err("Body must have Text or Html.".to_owned());
        }
        let text = text.unwrap_or_default();
        if subject.len() + text.len() + html.as_ref().map_or(0, String::len) > MAX_BYTES {
            return Err("Message length is more than 41943040 bytes long.".to_owned());
        }
        let mut tags = BTreeMap::new();
        for Tag { name, value } in self.email_tags {
            if !is_tag(&name) || !is_tag(&value) {
                return Err("Email tags are 1 to 256 of the characters A-Z a-z 0-9 _ - . @".to_owned());
            }
            if tags.insert(name, value).is_some() {
                return Err("Duplicate email tags.".to_owned());
            }
        }
        let configuration_set = self.configuration_set_name;
        if configuration_set.as_ref().is_some_and(|name| !is_set(name)) {
            return Err("A configuration set is 1 to 64 of the characters A-Z a-z 0-9 _ -".to_owned());
        }
        Ok(Mail { message_id, from, to, subject, text, html, configuration_set, tags, at })
    }
}

impl Text {
    fn data(self) -> Result<String, String> {
        let ascii = self.charset.is_none_or(|charset| charset.eq_ignore_ascii_case("us-ascii"));
        if ascii && !self.data.is_ascii() {
            // SES would replace the non-ASCII characters with question marks. An error makes the
            // mistake visible.
            return Err("Data has characters that its Charset, by default 7-bit ASCII, does not have.".to_owned());
        }
        Ok(self.data)
    }
}

/// Validates `name@domain` or `Display name <name@domain>`. Name and domain must be ASCII.
fn address(text: &str) -> Result<(), String> {
    let bare = match text.split_once('<') {
        Some((_, bare)) => bare.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let is_plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | ',' | ';' | '@'))
    };
    let parts = bare.rsplit_once('@').filter(|(local, domain)| is_plain(local) && is_plain(domain));
    // The error does not quote the address, because it may be personal data.
    if parts.is_none() || text.chars().any(char::is_control) {
        return Err("An address is not of the form name@domain.".to_owned());
    }
    Ok(())
}

fn is_set(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_SET).contains(&text.len()) && text.bytes().all(known)
}

fn is_tag(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@');
    (1..=MAX_TAG).contains(&text.len()) && text.bytes().all(known)
}

const SIMULATOR: &str = "simulator.amazonses.com";

/// Returns the detail-type and the detail of each event that a mail causes. The form is SES's:
/// <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html>.
pub(super) fn reports(mail: &Mail) -> Vec<(&'static str, Value)> {
    let Some(set) = &mail.configuration_set else { return Vec::new() };
    let mut tags: serde_json::Map<String, Value> =
        mail.tags.iter().map(|(name, value)| (name.clone(), json!([value]))).collect();
    tags.insert("ses:configuration-set".to_owned(), json!([set]));
    let about = json!({
        "timestamp": mail.at, "messageId": mail.message_id, "source": mail.from, "destination": mail.to, "tags": tags,
    });
    let report = |to: &String| {
        let (local, domain) = to.rsplit_once('@')?;
        let mailbox = local.split('+').next().unwrap_or_default();
        match mailbox {
            _ if !domain.eq_ignore_ascii_case(SIMULATOR) => None,
            "bounce" => Some((
                "Email Bounced",
                json!({
                    "eventType": "Bounce",
                    "bounce": {
                        "feedbackId": mail.message_id, "bounceType": "Permanent", "bounceSubType": "General",
                        "bouncedRecipients": [{
                            "emailAddress": to, "action": "failed", "status": "5.1.1",
                            "diagnosticCode": "smtp; 550 5.1.1 user unknown",
                        }],
                        "timestamp": mail.at,
                    },
                    "mail": about,
                }),
            )),
            "complaint" => Some((
                "Email Complaint Received",
                json!({
                    "eventType": "Complaint",
                    "complaint": {
                        "feedbackId": mail.message_id, "complaintSubType": null, "complaintFeedbackType": "abuse",
                        "complainedRecipients": [{"emailAddress": to}],
                        "timestamp": mail.at,
                    },
                    "mail": about,
                }),
            )),
            _ => None,
        }
    };
    mail.to.iter().filter_map(report).collect()
}
