//! Draws the figures: a small panel for each route, all with the same axes, so that growth is easy
//! to see.

use std::fmt::Write as _;

use super::{Cost, Figures, Growth, Stage, grouped, millis};

/// Panels in a row.
const COLUMNS: usize = 5;
/// Size of a panel in pixels, with its title.
const WIDTH: f64 = 250.0;
const HEIGHT: f64 = 120.0;
/// The plot area in a panel: left, top, right and bottom.
const FIELD: (f64, f64, f64, f64) = (34.0, 44.0, 240.0, 104.0);
/// Height above the panels.
const HEAD: f64 = 64.0;
/// The vertical axis, from a quarter to four times the value with the fewest items.
const TIMES: [(f64, &str); 5] = [(0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4")];
const CAPACITY: &str = "#0072b2";
const LATENCY: &str = "#d55e00";

/// Returns an SVG of all routes.
pub(super) fn draw(growth: &[Growth]) -> String {
    let rows = growth.len().div_ceil(COLUMNS);
    let (width, height) = (WIDTH * float(COLUMNS), HEAD + HEIGHT * float(rows) + 12.0);
    let sizes = growth.iter().flat_map(|route| &route.figures).map(|figures| size(figures.stage));
    let (least, most) = sizes.fold((u64::MAX, 1), |(least, most), size| (least.min(size), most.max(size)));
    let scale = Scale { least: decimal(least.min(most)), most: decimal(most) };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"9\" fill=\"#333\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<text x=\"10\" y=\"20\" font-size=\"14\">Cost and latency of each route with {} to {} items, as a multiple of \
        the values with {}</text>",
        grouped(least.min(most)),
        grouped(most),
        grouped(least.min(most))
    );
    let _ = writeln!(
        svg,
        "<g font-size=\"11\"><path d=\"M10 38h24\" stroke=\"{CAPACITY}\" stroke-width=\"3\"/><text x=\"40\" \
         y=\"42\">capacity units</text><path d=\"M130 38h24\" stroke=\"{LATENCY}\" stroke-width=\"1.5\"/><circle \
         cx=\"142\" cy=\"38\" r=\"2.5\" fill=\"{LATENCY}\"/><text x=\"160\" y=\"42\">latency, median</text><circle \
         cx=\"262\" cy=\"38\" r=\"3\" fill=\"#fff\" stroke=\"{LATENCY}\"/><text x=\"272\" y=\"42\">latency, all items \
         in this one list</text></g>"
    );
    for (place, route) in growth.iter().enumerate() {
        let (x, y) = (WIDTH * float(place % COLUMNS), HEAD + HEIGHT * float(place / COLUMNS));
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        panel(&mut svg, route, scale);
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

/// The horizontal axis, by number of items.
#[derive(Clone, Copy)]
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn x(self, items: u64) -> f64 {
        let share = (decimal(items) / self.least).log10() / (self.most / self.least).log10().max(f64::EPSILON);
        FIELD.0 + 8.0 + (FIELD.2 - FIELD.0 - 16.0) * share
    }
}

/// Returns the vertical position of a multiple. Values beyond the axis are at its end.
fn y(times: f64) -> f64 {
    let share = (times.clamp(0.25, 4.0).log2() + 2.0) / 4.0;
    FIELD.3 - (FIELD.3 - FIELD.1) * share
}

fn panel(svg: &mut String, Growth { route, figures }: &Growth, scale: Scale) {
    let (left, top, right, bottom) = FIELD;
    let (name, query) = route.split_once('?').unwrap_or((route, ""));
    // The longest routes do not fit otherwise.
    let squeezed = if name.len() > 42 {
        format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", WIDTH - 16.0)
    } else {
        String::new()
    };
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"12\" font-size=\"10\" font-weight=\"bold\"{squeezed}>{}</text>",
        escaped(name)
    );
    let Some(first) = figures.first() else { return };
    let query: String = query.chars().take(24).collect();
    let _ = writeln!(svg, "<text x=\"8\" y=\"24\">{}</text>", escaped(&query));
    let _ = writeln!(svg, "<text x=\"8\" y=\"36\">{} · {}</text>", said(first.cost), took(figures));
    for (times, label) in TIMES {
        let colour = if times == 1.0 { "#bbb" } else { "#eee" };
        let at = y(times);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"{colour}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" \
            fill=\"#777\">{label}</text>",
            left - 4.0,
            at + 3.0
        );
    }
    let shop: Vec<&Figures> = figures.iter().filter(|figures| matches!(figures.stage, Stage::Items(_))).collect();
    let before = shop.first().copied().unwrap_or(first);
    let line = |svg: &mut String, colour: &str, width: f64, times: &dyn Fn(&Figures) -> f64| {
        let points = shop.iter().map(|figures| format!("{:.1},{:.1}", scale.x(size(figures.stage)), y(times(figures))));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ =
            writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>");
    };
    let slower = |figures: &Figures| decimal(figures.median_us) / decimal(before.median_us.max(1));
    line(svg, CAPACITY, 3.0, &|figures| units(figures.cost) / units(before.cost).max(f64::EPSILON));
    line(svg, LATENCY, 1.5, &slower);
    for figures in figures {
        let (fill, stroke) = match figures.stage {
            Stage::Items(_) => (LATENCY, "none"),
            Stage::Collection(_) => ("#fff", LATENCY),
        };
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
            scale.x(size(figures.stage)),
            y(slower(figures))
        );
    }
    for figures in &shop {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#777\">{}</text>",
            scale.x(size(figures.stage)),
            bottom + 11.0,
            short(size(figures.stage))
        );
    }
    let _ = writeln!(svg, "<path d=\"M{left} {top}V{bottom}\" stroke=\"#bbb\"/>");
}

fn said(Cost { requests, read_units, write_units }: Cost) -> String {
    let requests = if requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    let units = [(read_units, "read"), (write_units, "write")].into_iter().filter(|(units, _)| *units > 0.0);
    units.fold(requests, |text, (units, kind)| format!("{text}, {units} {kind}"))
}

/// Returns the latency at the first and at the last stage.
fn took(figures: &[Figures]) -> String {
    match figures {
        [first, .., last] => format!("{} → {} ms", millis(first.median_us), millis(last.median_us)),
        [only] => format!("{} ms", millis(only.median_us)),
        [] => String::new(),
    }
}

const fn size(stage: Stage) -> u64 {
    match stage {
        Stage::Items(items) | Stage::Collection(items) => items,
    }
}

fn units(cost: Cost) -> f64 {
    cost.read_units + cost.write_units
}

/// Formats 1000 as 10³.
fn short(items: u64) -> String {
    let power = items.max(1).ilog10();
    let superscript = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match usize::try_from(power).ok().and_then(|power| superscript.get(power)) {
        Some(digit) if 10_u64.pow(power) == items => format!("10{digit}"),
        _ => grouped(items),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn float(number: usize) -> f64 {
    decimal(u64::try_from(number).unwrap_or(u64::MAX))
}

fn decimal(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_values_are_on_the_middle_line_and_larger_ones_above_it() {
        assert_eq!((y(1.0), y(4.0), y(100.0), y(0.25)), (74.0, 44.0, 44.0, 104.0));
        let scale = Scale { least: 1e3, most: 1e5 };
        assert_eq!([1_000, 10_000, 100_000].map(|items| scale.x(items)), [42.0, 137.0, 232.0]);
    }

    #[test]
    fn powers_of_ten_are_written_short_and_names_are_safe_in_xml() {
        assert_eq!([1_000, 2_000, 1_000_000].map(short), ["10³", "2,000", "10⁶"]);
        assert_eq!(escaped("a?b=1&c=<2"), "a?b=1&amp;c=&lt;2");
    }
}
