//! Plots as SVG, with whole numbers as coordinates.
//!
//! Colours and fonts of an inline plot come from the style sheet of the page, so a plot has the
//! page's light or dark scheme. A [`chart`] is a file with its own style. Each mark has a title,
//! which a browser shows as a tooltip.

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
    svg.push_str("<div class=\"wide\">");
    begin(svg, height, title);
}

fn begin(svg: &mut String, height: i128, title: &str) {
    let title = escaped(title);
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
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

/// A line of a [`chart`]: its label and its points.
#[derive(Debug)]
pub struct Line {
    pub label: String,
    pub points: Vec<(f64, f64)>,
}

/// An axis of a [`chart`]. A logarithmic axis doubles from tick to tick or multiplies by ten.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub title: &'static str,
    /// The distance between two ticks of a logarithmic axis, as a factor.
    pub factor: Option<f64>,
}

const STYLE: &str = "<style>svg{background:#fff}text{font:12px system-ui,sans-serif;fill:#444;\
    dominant-baseline:central}line{stroke:#ddd}polyline{fill:none;stroke-width:2}\
    .c0{stroke:#2a78d6;fill:#2a78d6}.c1{stroke:#d9662b;fill:#d9662b}.c2{stroke:#2f9e5b;fill:#2f9e5b}\
    .c3{stroke:#8a4fc4;fill:#8a4fc4}polyline.c0,polyline.c1,polyline.c2,polyline.c3{fill:none}\
    text.c0,text.c1,text.c2,text.c3{stroke:none}@media(prefers-color-scheme:dark){svg{background:#16181c}\
    text{fill:#bbb}line{stroke:#33363d}}</style>";

impl Axis {
    fn scaled(self, value: f64) -> f64 {
        self.factor.map_or(value, |factor| value.max(f64::MIN_POSITIVE).ln() / factor.ln())
    }

    /// Returns the ticks from the smallest to the largest value.
    fn ticks(self, low: f64, high: f64) -> Vec<f64> {
        match self.factor {
            Some(factor) => {
                let start = factor.powf(self.scaled(low).floor());
                std::iter::successors(Some(start), |tick| Some(tick * factor))
                    .take_while(|tick| tick / factor < high * 0.999)
                    .collect()
            }
            None => {
                let step = [1.0, 2.0, 5.0].into_iter().cycle().scan((0, 1.0), |(count, decade), digit| {
                    let step = digit * *decade;
                    *count += 1;
                    *decade *= if *count % 3 == 0 { 10.0 } else { 1.0 };
                    Some(step)
                });
                let step = step.take(30).find(|step| high / step <= 6.0).unwrap_or(high);
                std::iter::successors(Some(0.0), |tick| Some(tick + step))
                    .take_while(|tick| tick - step < high * 0.999)
                    .collect()
            }
        }
    }
}

/// Draws lines as an SVG file.
#[allow(clippy::cast_possible_truncation, reason = "coordinates are small")]
#[must_use]
pub fn chart(title: &str, across: Axis, up: Axis, lines: &[Line]) -> String {
    let [left, top, right, bottom] = AREA;
    let bounds = |pick: fn(&(f64, f64)) -> f64, axis: Axis| {
        let values = || lines.iter().flat_map(|line| line.points.iter().map(pick));
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let ticks = axis.ticks(low, high.max(low * 1.001));
        let ends = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
        (ticks, ends)
    };
    let ((x_ticks, x_ends), (y_ticks, y_ends)) = (bounds(|point| point.0, across), bounds(|point| point.1, up));
    let place = |axis: Axis, (low, high): (f64, f64), value: f64, from: i128, to: i128| {
        let (low, high) = (axis.scaled(low), axis.scaled(high));
        let share = ((axis.scaled(value) - low) / (high - low).max(f64::EPSILON)).clamp(0.0, 1.0);
        from + (share * (to - from) as f64).round() as i128
    };
    let x = |value: f64| place(across, x_ends, value, left, right);
    let y = |value: f64| place(up, y_ends, value, bottom, top);
    let mut svg = String::new();
    begin(&mut svg, bottom + 56, title);
    svg.push_str(STYLE);
    for tick in &y_ticks {
        let height = y(*tick);
        let _ = write!(
            svg,
            "<line x1=\"{left}\" y1=\"{height}\" x2=\"{right}\" y2=\"{height}\"/>\
             <text x=\"{end}\" y=\"{height}\" text-anchor=\"end\">{tick}</text>",
            end = left - 8,
        );
    }
    for tick in &x_ticks {
        let (across, below) = (x(*tick), bottom + 16);
        let _ = write!(svg, "<text x=\"{across}\" y=\"{below}\" text-anchor=\"middle\">{tick}</text>");
    }
    let mut above: Vec<i128> = Vec::new();
    for (colour, Line { label, points }) in lines.iter().enumerate() {
        let colour = colour % 4;
        let drawn: Vec<String> = points.iter().map(|point| format!("{},{}", x(point.0), y(point.1))).collect();
        let label = escaped(label);
        // Moves a label down if it would overlap an earlier one.
        let mut end = points.last().map_or(bottom, |point| y(point.1));
        while above.iter().any(|other| (other - end).abs() < 14) {
            end += 14;
        }
        above.push(end);
        let _ = write!(
            svg,
            "<g><title>{label}</title><polyline class=\"c{colour}\" points=\"{}\"/>\
             <text class=\"c{colour}\" x=\"{}\" y=\"{end}\">{label}</text></g>",
            drawn.join(" "),
            right + 8,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"8\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></svg>",
        escaped(up.title),
        i128::midpoint(left, right),
        bottom + 40,
        escaped(across.title),
    );
    svg
}
