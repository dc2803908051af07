//! Times the way of a screenshot from PNG to JPEG, stage by stage: `cargo run --release -p sinew-phones --example picture FILE.png`.

use std::time::Instant;

use sinew_phones::Image;
use sinew_phones::image::Raster;

fn main() {
    let path = std::env::args().nth(1).expect("a PNG file");
    let file = std::fs::read(&path).expect("a readable file");
    let mut times: Vec<(f64, f64)> = Vec::new();
    for _ in 0..60 {
        let bytes = file.clone();
        let start = Instant::now();
        let raster = Raster::decode(Image::Png(bytes)).expect("a PNG");
        let decoded = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        let jpeg = raster.to_jpeg(80).expect("a JPEG");
        let encoded = start.elapsed().as_secs_f64() * 1e3;
        std::hint::black_box(jpeg);
        times.push((decoded, encoded));
    }
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = times.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        (all[0], all[all.len() / 2])
    };
    println!("decode (best, median) {:.2?} ms, encode {:.2?} ms", median(|t| t.0), median(|t| t.1));
}
