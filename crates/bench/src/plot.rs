//! Plots of figures over time, as SVG.

use std::fmt::Write as _;

/// Values that share a scale.
pub(crate) struct PlotPanel {
    pub(crate) unit: &'static str,
    pub(crate) lines: Vec<PlotLine>,
}

pub(crate) struct PlotLine {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<f64>,
}

const WIDTH: f64 = 720.0;
const PANEL: f64 = 180.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;
const GAP: f64 = 36.0;
const COLOURS: [&str; 3] = ["#2563eb", "#d97706", "#059669"];

/// Panels below each other over one time axis. Scales start at zero.
pub(crate) fn to_svg(title: &str, axis: &str, times: &[f64], panels: &[PlotPanel]) -> String {
    let height = TOP + panels.len() as f64 * (PANEL + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    let end = highest(times.iter());
    for (index, panel) in panels.iter().enumerate() {
        draw(&mut svg, panel, times, end, TOP + index as f64 * (PANEL + GAP));
    }
    let bottom = height - 6.0;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{bottom}\">0</text>");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">{end:.0} {axis}</text>", WIDTH - RIGHT);
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &PlotPanel, times: &[f64], end: f64, top: f64) {
    let most = highest(panel.lines.iter().flat_map(|line| &line.values)) * 1.1;
    let x = |time: f64| LEFT + time / end * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| top + PANEL - value / most * PANEL;
    for share in [0.0, 0.5, 1.0] {
        let (value, at) = (most * share, y(most * share));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\" stroke=\"#d1d5db\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.1} {}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            panel.unit
        );
    }
    for ((index, line), colour) in panel.lines.iter().enumerate().zip(COLOURS) {
        let points = times.iter().zip(&line.values).map(|(time, value)| format!("{:.1},{:.1}", x(*time), y(*value)));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{points}\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            LEFT + 8.0 + 130.0 * index as f64,
            top - 6.0,
            line.name
        );
    }
}

/// The largest value, and never zero.
fn highest<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    values.copied().fold(f64::MIN_POSITIVE, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_inside_their_panel() {
        let panel = PlotPanel { unit: "MB", lines: vec![PlotLine { name: "memory", values: vec![10.0, 0.0, 20.0] }] };
        let svg = to_svg("a title", "minutes", &[0.0, 1.0, 2.0], &[panel]);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        let points: Vec<(f64, f64)> = points
            .split(' ')
            .map(|point| point.split_once(',').expect("two numbers"))
            .map(|(x, y)| (x.parse().expect("a number"), y.parse().expect("a number")))
            .collect();
        assert_eq!(points.len(), 3);
        assert!(points.iter().all(|(x, y)| (LEFT..=WIDTH - RIGHT).contains(x) && (TOP..=TOP + PANEL).contains(y)));
        assert!(points[2].1 < points[0].1 && points[0].1 < points[1].1, "more is higher: {points:?}");
    }

    #[test]
    fn nothing_measured_is_an_empty_plot() {
        assert!(to_svg("", "minutes", &[], &[]).ends_with("</svg>\n"));
    }
}
