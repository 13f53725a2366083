//! The formats of postal codes.

use super::Country;

/// The formats of the countries with postal codes. `#` is a digit, `@` a letter, `*` a digit or a
/// letter, and every other character is itself. White space separates the formats of a country.
///
/// The source is Google's Address Data Service, which libaddressinput uses
/// (<https://github.com/google/libaddressinput>), as of February 2025. Its patterns and the fields
/// that it requires were reduced to these formats, so a code that does not exist can pass.
/// Differences from the source: the prefixes of countries and Tristan da Cunha's code are valid.
///
/// The first element names the countries, and the second says whether each of their addresses has a
/// code. A country that is not listed has no postal codes.
const FORMATS: &[(&str, bool, &str)] = &[
    ("AT AU BE DK HU NO NZ SJ ZA", true, "####"),
    ("CH", true, "#### CH####"),
    ("LU", true, "#### L#### LU####"),
    ("LV", true, "#### LV####"),
    ("LI", true, "94## FL94##"),
    ("GL", true, "39##"),
    ("CZ DE EE ES FR GR IT KR MX MY PL SK TR UA", true, "#####"),
    ("FI", true, "##### FI#####"),
    ("LT", true, "##### LT#####"),
    ("SE", true, "##### SE#####"),
    ("AX", true, "22### AX22###"),
    ("SM", true, "4789#"),
    ("CN IN RO RU SG", true, "######"),
    ("JP PT", true, "#######"),
    ("BR", true, "########"),
    ("TW", true, "### ##### ######"),
    ("CA", true, "@#@#@#"),
    ("NL", true, "####@@"),
    ("GB", true, "@##@@ @#*#@@ @@##@@ @@#*#@@ GIR0AA BFPO# BFPO## BFPO### BFPO####"),
    ("GG", true, "GY##@@ GY#*#@@"),
    ("IM", true, "IM##@@ IM#*#@@"),
    ("JE", true, "JE##@@ JE#*#@@"),
    ("FK", true, "FIQQ1ZZ"),
    ("GS", true, "SIQQ1ZZ"),
    ("IO", true, "BBND1ZZ"),
    ("PN", true, "PCRN1ZZ"),
    ("SH", true, "ASCN1ZZ STHL1ZZ TDCU1ZZ"),
    ("TC", true, "TKCA1ZZ"),
    ("BL GP MF", true, "9#0## 9#1##"),
    ("MQ", true, "9#2##"),
    ("GF", true, "9#3##"),
    ("RE", true, "9#4##"),
    ("PM", true, "9#5##"),
    ("YT", true, "976##"),
    ("WF", true, "986##"),
    ("PF", true, "987##"),
    ("NC", true, "988##"),
    ("US", true, "##### #########"),
    ("AS", true, "96799 96799####"),
    ("FM", true, "9694# 9694#####"),
    ("GU MH", true, "969## 969######"),
    ("MP", true, "9695# 9695#####"),
    ("PR", true, "00### 00####### PR00###"),
    ("PW", true, "9693# 9694# 9693##### 9694#####"),
    ("VI", true, "008## 008######"),
    ("AF AL BD BG CV CY ET GE GW HM LR MK MZ NE PH PY TN VE", false, "####"),
    ("AZ", false, "#### AZ####"),
    ("HT", false, "#### HT####"),
    ("MD", false, "#### MD####"),
    ("SI", false, "#### SI####"),
    ("BA BT CU DO DZ EG EH GT HN ID IQ JO KE KW LA LK MA MM MN MV NA NI NP PK SA SD SN TH UY ZM", false, "#####"),
    ("HR", false, "##### HR#####"),
    ("MC", false, "980## MC980##"),
    ("ME", false, "8####"),
    ("UM", false, "96898"),
    ("VA", false, "00120"),
    ("BY CO EC KG KZ NG TJ TM UZ", false, "######"),
    ("CL", false, "#######"),
    ("IR", false, "##########"),
    ("GN IS LS MG PG", false, "###"),
    ("BH", false, "### ####"),
    ("FO", false, "### FO###"),
    ("OM", false, "### PC###"),
    ("AM", false, "#### ######"),
    ("CR", false, "#### ##### #######"),
    ("IL", false, "##### #######"),
    ("KH RS VN", false, "##### ######"),
    ("LB", false, "#### ########"),
    ("TZ", false, "#### #####"),
    ("AD", false, "AD###"),
    ("AI", false, "2640 AI2640"),
    ("AR", false, "#### @#### ####@@@ @####@@@"),
    ("BB", false, "##### BB#####"),
    ("BM", false, "@@**"),
    ("BN", false, "@@####"),
    ("CC", false, "6799"),
    ("CX", false, "6798"),
    ("GI", false, "GX111AA"),
    ("IE", false, "*******"),
    ("KY", false, "KY#####"),
    ("MT", false, "@@@## @@@### @@@####"),
    ("MU", false, "##### ###@@###"),
    ("NF", false, "2899"),
    ("PE", false, "##### LIMA# LIMA## CALLAO# CALLAO##"),
    ("SO", false, "@@#####"),
    ("SV", false, "#### CP####"),
    ("SZ", false, "@###"),
    ("VC", false, "VC####"),
    ("VG", false, "VG####"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostalCodeError {
    #[error("is required in this country")]
    Missing,
    #[error("is not a postal code of this country")]
    Format,
}

impl Country {
    /// Checks the postal code of an address in this country. Spaces, hyphens and case do not count.
    /// In a country without postal codes, every text is valid.
    pub fn check_postal_code(&self, code: Option<&str>) -> Result<(), PostalCodeError> {
        let is_listed = |countries: &str| countries.split(' ').any(|country| country == self.as_str());
        let Some((_, is_required, formats)) = FORMATS.iter().find(|(countries, ..)| is_listed(countries)) else {
            return Ok(());
        };
        let Some(code) = code else {
            return if *is_required { Err(PostalCodeError::Missing) } else { Ok(()) };
        };
        let code: String = code.chars().filter(|c| !matches!(c, ' ' | '-')).map(|c| c.to_ascii_uppercase()).collect();
        if formats.split(' ').any(|format| fits(&code, format)) { Ok(()) } else { Err(PostalCodeError::Format) }
    }
}

fn fits(code: &str, format: &str) -> bool {
    let fits = |(c, place): (char, char)| match place {
        '#' => c.is_ascii_digit(),
        '@' => c.is_ascii_uppercase(),
        '*' => c.is_ascii_digit() || c.is_ascii_uppercase(),
        other => c == other,
    };
    code.len() == format.len() && code.chars().zip(format.chars()).all(fits)
}
