use std::collections::HashMap;

use http_api::{Code, MAX_BODY_BYTES, Problem, Request};
use key_schema::id::{Born, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::Product;

use super::plan::Wanted;
use super::report::{Outcome, Report};
use crate::body::ImportedProduct;

pub const MAX_LINES: usize = 1000;

#[derive(Debug, Default)]
pub struct Lines {
    firsts: Vec<First>,
    repeats: Vec<Repeat>,
}

#[derive(Debug)]
struct First {
    line: usize,
    product: Product,
    stock: u64,
    keeps_price: bool,
}

/// A further line about a product. It differs from the first line at most in the stock.
#[derive(Debug)]
struct Repeat {
    line: usize,
    of: usize,
    id: ProductId,
}

/// Reads the lines. Adds a refusal to the report for each invalid line, and for each line that
/// contradicts an earlier line.
///
/// # Errors
/// 422 `too_many_lines`, and the errors of [`Request::lines`].
pub fn read(request: &Request<'_>, report: &mut Report) -> Result<Lines, Problem> {
    let texts: Vec<(usize, &str)> = request.lines(MAX_BODY_BYTES)?.take(MAX_LINES + 1).collect();
    if texts.len() > MAX_LINES {
        return Err(Problem::new(Code::TooManyLines, format!("An import can have at most {MAX_LINES} lines.")));
    }
    let mut lines = Lines::default();
    let mut seen: HashMap<ProductId, usize> = HashMap::new();
    for (line, text) in texts {
        let (product, stock, keeps_price) = match request.document(text).map(ImportedProduct::into_product) {
            Ok(line) => line,
            Err(problem) => {
                report.add(line, None, Outcome::from(&problem));
                continue;
            }
        };
        let id = product.id.clone();
        match seen.get(&id).and_then(|position| lines.firsts.get(*position)) {
            // Stock is not compared, because an import never changes an existing product's stock.
            Some(first) if first.product == product && first.keeps_price == keeps_price => {
                lines.repeats.push(Repeat { line, of: first.line, id });
            }
            Some(_) => report.add(line, Some(id), Outcome::conflict()),
            None => {
                seen.insert(id, lines.firsts.len());
                lines.firsts.push(First { line, product, stock, keeps_price });
            }
        }
    }
    Ok(lines)
}

impl Lines {
    pub fn wanted(&self, born: impl Fn() -> Result<Born, Problem>, at: Instant) -> Result<Vec<Wanted>, Problem> {
        let wanted = |First { line, product, stock, keeps_price }: &First| {
            let product = Stored::new(product.clone(), born()?, at);
            Ok(Wanted { line: *line, product, stock: *stock, keeps_price: *keeps_price })
        };
        self.firsts.iter().map(wanted).collect()
    }

    /// Reports on the lines that repeat an earlier line. If the earlier line was refused, the
    /// repeat is refused, too. Otherwise the repeat is reported as unchanged.
    pub fn answer_repeats(self, report: &mut Report) {
        for Repeat { line, of, id } in self.repeats {
            let outcome = match report.outcome(of) {
                Some(refused @ Outcome::Refused(_)) => refused.clone(),
                _ => Outcome::Unchanged,
            };
            report.add(line, Some(id), outcome);
        }
    }
}
