//! A tone of 440 Hz in five Opus frames of 60 ms, mono at 24 kHz.

const FRAMES: [&str; 5] = [
    "18e0e700b4073f6b4793002d0dc802cbd87f3b93571c93df1035048a77fc6b6d254bc11e760e303872f00eda551e4879b23e500331cf323a39b8e4a3f088",
    "18e8a04c1e8474f4ba54e977bd1d27820ac768e862ecd886aeaf7a09c921ff8cc7e7740c83839b93bee6b1ff41e90674c0",
    "18e8a04bbfb7a4009380573da8e6b12a3ee7dd795f9947e3dafbb0ae9c135499d2d2053fdd20994ec7c107ea3d77cea25d568634645d2122d0",
    "18e8a04c1e8474f8c93403fcd64c977d406fcf8a5a158d900aab429a5412e87bdc5c8827d2ecb8cb4ac19657f11021c0",
    "18e8a04c1e8474f6b639e073cd4fd990fd052d43a3f3f0533b93414d60a278e9398e9f989fee02a47b79a45468f2a7d37b76b5dffc80",
];

/// The frames of the tone, in order.
pub fn tone() -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
    FRAMES.iter().map(|frame| frame.as_bytes().chunks(2).filter_map(byte).collect()).collect()
}
