//! Plots as inline SVG, with whole numbers as coordinates.
//!
//! Colours and fonts come from the style sheet of the page, so a plot has the page's light or dark
//! scheme. Each mark has a title, which a browser shows as a tooltip.

use std::fmt::Write as _;

use super::money::Nano;

const WIDTH: i128 = 900;
/// The distance between two bars.
const ROW: i128 = 26;
const BAR: i128 = 14;
/// The maximum width of a character in a label.
const CHARACTER: i128 = 8;
/// The longest label, in characters.
const LABEL: usize = 48;
/// The space for an amount beside its bar.
const AMOUNT: i128 = 100;

pub(crate) struct Bar {
    pub label: String,
    pub amount: Nano,
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL {
        return escaped(label);
    }
    let kept: String = label.chars().take(LABEL - 1).collect();
    escaped(&format!("{kept}…"))
}

fn length(text: &str) -> i128 {
    i128::try_from(text.chars().count().min(LABEL)).unwrap_or_default()
}

fn open(svg: &mut String, height: i128, title: &str) {
    let title = escaped(title);
    let _ = write!(
        svg,
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         xmlns=\"http://www.w3.org/2000/svg\"><title>{title}</title>"
    );
}

/// Draws horizontal bars from a common line. Negative amounts extend to the left.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> String {
    let label = bars.iter().map(|bar| length(&bar.label) * CHARACTER).max().unwrap_or_default() + 10;
    let most = |sign: i128| bars.iter().map(|bar| bar.amount.0 * sign).max().unwrap_or_default().max(0);
    let (negative, positive) = (most(-1), most(1));
    // The plot reserves no space for amounts on a side without bars.
    let margins = [negative, positive].into_iter().filter(|side| *side > 0).count();
    let space = (WIDTH - label - AMOUNT * i128::try_from(margins.max(1)).unwrap_or(1)).max(1);
    let range = (negative + positive).max(1);
    let zero = label + if negative > 0 { AMOUNT + negative * space / range } else { 0 };
    let height = ROW * i128::try_from(bars.len()).unwrap_or_default() + 4;
    let mut svg = String::new();
    open(&mut svg, height, title);
    for (row, bar) in (0_i128..).zip(bars) {
        let y = row * ROW + 2;
        let middle = y + ROW / 2;
        let length = (bar.amount.0.abs() * space / range).max(1);
        let (x, class, text, anchor) = if bar.amount.0 < 0 {
            (zero - length, "less", zero - length - 6, "end")
        } else {
            (zero, "more", zero + length + 6, "start")
        };
        let (name, amount) = (shortened(&bar.label), bar.amount);
        let full = escaped(&bar.label);
        let _ = write!(
            svg,
            "<g><title>{full}: {amount} dollars</title>\
             <text class=\"label\" x=\"{end}\" y=\"{middle}\" text-anchor=\"end\">{name}</text>\
             <rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"{length}\" height=\"{BAR}\" rx=\"2\"/>\
             <text class=\"value\" x=\"{text}\" y=\"{middle}\" text-anchor=\"{anchor}\">{amount}</text></g>",
            end = label - 8,
            top = middle - BAR / 2,
        );
    }
    let _ = write!(svg, "<line class=\"axis\" x1=\"{zero}\" y1=\"0\" x2=\"{zero}\" y2=\"{height}\"/></svg></div>");
    svg
}

/// The points of the comparison of capacity modes.
pub(crate) struct Curve {
    /// Utilization in percent, and the amount of provisioned capacity.
    pub provisioned: Vec<(u64, Nano)>,
    pub on_demand: Nano,
}

/// The plot area of the comparison: left, top, right and bottom.
const AREA: [i128; 4] = [90, 20, 760, 280];

/// Draws the amount for provisioned capacity at each utilization, and the amount on demand.
pub(crate) fn utilization(title: &str, curve: &Curve) -> String {
    let [left, top, right, bottom] = AREA;
    // At low utilizations provisioned capacity is very expensive, so the plot cuts the curve off
    // there.
    let most = (curve.on_demand.0 * 3).max(1);
    let x = |percent: u64| left + i128::from(percent) * (right - left) / 100;
    let y = |amount: Nano| bottom - amount.0.min(most) * (bottom - top) / most;
    let mut svg = String::new();
    open(&mut svg, bottom + 50, title);
    for step in 0..=3 {
        let amount = Nano(most * step / 3);
        let height = y(amount);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" y1=\"{height}\" x2=\"{right}\" y2=\"{height}\"/>\
             <text class=\"label\" x=\"{end}\" y=\"{height}\" text-anchor=\"end\">{amount}</text>",
            end = left - 8,
        );
    }
    for percent in [0, 25, 50, 75, 100] {
        let (place, below) = (x(percent), bottom + 18);
        let _ =
            write!(svg, "<text class=\"label\" x=\"{place}\" y=\"{below}\" text-anchor=\"middle\">{percent} %</text>");
    }
    let shown = curve.provisioned.iter().filter(|(_, amount)| amount.0 <= most);
    let points: Vec<String> = shown.map(|(percent, amount)| format!("{},{}", x(*percent), y(*amount))).collect();
    let flat = y(curve.on_demand);
    let end = curve.provisioned.last().map_or(bottom, |(_, amount)| y(*amount));
    // Moves a label if the two lines end close to each other, so that the labels do not overlap.
    let label = if (end - flat).abs() < 18 { flat + if end < flat { -18 } else { 18 } } else { end };
    let _ = write!(
        svg,
        "<polyline class=\"curve\" points=\"{}\"/>\
         <line class=\"flat\" x1=\"{left}\" y1=\"{flat}\" x2=\"{right}\" y2=\"{flat}\"/>\
         <text class=\"value\" x=\"{beside}\" y=\"{flat}\">on demand</text>\
         <text class=\"value\" x=\"{beside}\" y=\"{label}\">provisioned</text>\
         <text class=\"label\" x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">\
         utilization of the provisioned capacity</text>\
         </svg></div>",
        points.join(" "),
        beside = right + 8,
        middle = i128::midpoint(left, right),
        below = bottom + 40,
    );
    svg
}
