//! The picture of a report: SNR by tensor, one panel a format, one mark a rule.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use hadal::num::mx::{MxFormat, ScaleRule};
use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::report::Measured;

/// Size of one panel in pixels.
const PANEL: (u32, u32) = (960, 300);
/// Up to so many tensors are named on the axis; more are numbered.
const NAMED: usize = 12;

/// Where a picture goes, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Svg,
    Png,
}

/// Reads the option: the name's ending decides.
pub(super) fn image(text: &str) -> Result<Image, String> {
    let path = PathBuf::from(text);
    let is = |ending| Path::new(text).extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    match (is("svg"), is("png")) {
        (true, _) => Ok(Image { path, kind: Kind::Svg }),
        (_, true) => Ok(Image { path, kind: Kind::Png }),
        _ => Err("the name must end in .svg or .png".to_owned()),
    }
}

/// Whether the font is there. It is part of the program, so a picture is the same on every machine.
static FONT: LazyLock<bool> = LazyLock::new(|| {
    register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::HACK_REGULAR).is_ok()
});

/// Draws a report; the bytes of the file.
pub(super) fn draw(image: &Image, measured: &[Measured]) -> Result<Vec<u8>, String> {
    if !*FONT {
        return Err("the built-in font cannot be read".to_owned());
    }
    let formats = formats(measured);
    let size = (PANEL.0, PANEL.1 * u32::try_from(formats.len().max(1)).unwrap_or(1));
    match image.kind {
        Kind::Svg => {
            let mut text = String::new();
            panels(SVGBackend::with_string(&mut text, size).into_drawing_area(), &formats, measured)?;
            Ok(text.into_bytes())
        }
        Kind::Png => {
            let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
            panels(BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area(), &formats, measured)?;
            let mut out = Vec::new();
            let mut encoder = png::Encoder::new(&mut out, size.0, size.1);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
            writer.write_image_data(&pixels).map_err(|e| e.to_string())?;
            writer.finish().map_err(|e| e.to_string())?;
            Ok(out)
        }
    }
}

fn formats(measured: &[Measured]) -> Vec<MxFormat> {
    let there = |f: &MxFormat| measured.iter().any(|m| m.results.iter().any(|r| r.format == *f));
    MxFormat::ALL.into_iter().filter(there).collect()
}

fn panels<B: DrawingBackend>(
    root: DrawingArea<B, Shift>,
    formats: &[MxFormat],
    measured: &[Measured],
) -> Result<(), String> {
    root.fill(&WHITE).map_err(|e| e.to_string())?;
    for (area, format) in root.split_evenly((formats.len().max(1), 1)).iter().zip(formats) {
        panel(area, *format, measured).map_err(|e| e.to_string())?;
    }
    root.present().map_err(|e| e.to_string())
}

fn panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    format: MxFormat,
    measured: &[Measured],
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let points = |rule: ScaleRule| {
        measured.iter().enumerate().filter_map(move |(i, m)| {
            let r = m.results.iter().find(|r| r.format == format && r.rule == rule)?;
            // Exact results have no finite SNR and no mark.
            r.stats.snr().filter(|v| v.is_finite()).map(|v| (i as f64, v))
        })
    };
    let all = || ScaleRule::ALL.into_iter().flat_map(points).map(|(_, v)| v);
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let margin = ((high - low) * 0.1).max(0.5);
    // The fifth on the right is the legend's.
    let count = measured.len();
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{format}: SNR in dB, higher is better"), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(-0.5..count as f64 * 1.2 - 0.5, low - margin..high + margin)?;
    let label = |x: &f64| {
        let near = x.round();
        if (x - near).abs() > 0.01 || near < 0.0 || near >= count as f64 {
            return String::new();
        }
        let name = measured.get(near as usize).map_or("", |m| m.name.as_str());
        if count <= NAMED && !name.is_empty() {
            shortened(name, 72 / count.max(1))
        } else {
            format!("{near}")
        }
    };
    let mut mesh = chart.configure_mesh();
    if count <= NAMED {
        mesh.disable_x_mesh();
    }
    mesh.max_light_lines(1)
        .x_labels(if count <= NAMED { 2 * count + 1 } else { 10 })
        .x_label_formatter(&label)
        .y_labels(6)
        .y_label_formatter(&|v| format!("{v:.1}"))
        .label_style(("sans-serif", 12))
        .draw()?;
    let colours = [RGBColor(0, 90, 180), RGBColor(220, 120, 0), RGBColor(0, 130, 90), RGBColor(170, 40, 120)];
    for (n, (rule, colour)) in ScaleRule::ALL.into_iter().zip(colours).enumerate() {
        // Rules that agree would hide each other.
        let aside = (n as f64 - 1.5) * 0.12;
        let marks: Vec<(f64, f64)> = points(rule).map(|(x, y)| (x + aside, y)).collect();
        if !measured.iter().any(|m| m.results.iter().any(|r| r.rule == rule)) {
            continue;
        }
        let style = colour.filled();
        chart
            .draw_series(marks.iter().map(|p| Mark { rule: n, at: *p, style }))?
            .label(rule.name())
            .legend(move |(x, y)| Mark { rule: n, at: (x + 8, y), style });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 12))
        .draw()
}

/// The mark of a rule: colour alone does not tell them apart for everyone.
struct Mark<C> {
    rule: usize,
    at: C,
    style: ShapeStyle,
}

impl<'a, C> PointCollection<'a, C> for &'a Mark<C> {
    type Point = &'a C;
    type IntoIter = std::iter::Once<&'a C>;

    fn point_iter(self) -> Self::IntoIter {
        std::iter::once(&self.at)
    }
}

impl<C, B: DrawingBackend> Drawable<B> for Mark<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut points: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        let Some((x, y)) = points.next() else { return Ok(()) };
        match self.rule {
            0 => backend.draw_circle((x, y), 4, &self.style, true),
            1 => backend.fill_polygon([(x - 5, y + 4), (x + 5, y + 4), (x, y - 5)], &self.style),
            2 => {
                backend.draw_line((x - 4, y - 4), (x + 4, y + 4), &self.style)?;
                backend.draw_line((x - 4, y + 4), (x + 4, y - 4), &self.style)
            }
            _ => backend.draw_circle((x, y), 4, &self.style, false),
        }
    }
}

/// The end of a name, which tells tensors of a model apart better than its beginning.
fn shortened(name: &str, most: usize) -> String {
    let count = name.chars().count();
    let most = most.max(4);
    if count <= most {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(count - most + 2).collect();
    format!("..{tail}")
}
