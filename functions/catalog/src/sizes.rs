//! Smaller copies of pictures.

use std::io::Cursor;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, Limits};
use key_schema::picture::{PictureCopy, PictureSize, Shape};

/// The largest side of a picture that is decoded, in pixels.
const MAX_SIDE: u32 = 12_000;
/// The most memory in bytes for a decoded picture. The function has 1,024 MB.
const MAX_DECODED: u64 = 256 << 20;
/// The quality of the copies, from 1 to 100.
const QUALITY: u8 = 82;

/// A picture's dimensions, and its copies as files.
#[derive(Debug)]
pub struct Resized {
    pub shape: Shape,
    pub files: Vec<File>,
}

#[derive(Debug)]
pub struct File {
    pub size: PictureSize,
    pub content_type: &'static str,
    pub bytes: Bytes,
}

/// Decodes a picture and makes its smaller copies. Returns [`None`] for a media type that is not
/// decoded.
pub fn resize(content_type: &str, bytes: &[u8]) -> Option<Result<Resized, ImageError>> {
    let format = match content_type {
        "image/jpeg" => ImageFormat::Jpeg,
        "image/png" => ImageFormat::Png,
        "image/webp" => ImageFormat::WebP,
        _ => return None,
    };
    Some(decode(format, bytes).and_then(|(picture, profile)| copies(&picture, profile.as_deref())))
}

/// Returns the picture upright, and its colour profile.
fn decode(format: ImageFormat, bytes: &[u8]) -> Result<(DynamicImage, Option<Vec<u8>>), ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let (orientation, profile) = (decoder.orientation()?, decoder.icc_profile()?);
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok((picture, profile))
}

fn copies(picture: &DynamicImage, profile: Option<&[u8]>) -> Result<Resized, ImageError> {
    let (width, height) = (picture.width(), picture.height());
    let mut resized = Resized { shape: Shape { width, height, copies: Vec::new() }, files: Vec::new() };
    for size in PictureSize::ALL {
        if size.pixels() >= width.max(height) {
            break;
        }
        let copy = picture.thumbnail(size.pixels(), size.pixels());
        resized.shape.copies.push(PictureCopy { size, width: copy.width(), height: copy.height() });
        resized.files.push(encode(size, &copy, profile)?);
    }
    Ok(resized)
}

/// Encodes as JPEG, or as WebP if the picture has transparent parts.
fn encode(size: PictureSize, copy: &DynamicImage, profile: Option<&[u8]>) -> Result<File, ImageError> {
    let mut bytes = Vec::new();
    let content_type = if copy.color().has_alpha() {
        let (mut encoder, copy) = (WebPEncoder::new_lossless(&mut bytes), copy.to_rgba8());
        keep_profile(&mut encoder, profile);
        encoder.write_image(&copy, copy.width(), copy.height(), image::ExtendedColorType::Rgba8)?;
        "image/webp"
    } else {
        let (mut encoder, copy) = (JpegEncoder::new_with_quality(&mut bytes, QUALITY), copy.to_rgb8());
        keep_profile(&mut encoder, profile);
        encoder.write_image(&copy, copy.width(), copy.height(), image::ExtendedColorType::Rgb8)?;
        "image/jpeg"
    };
    Ok(File { size, content_type, bytes: bytes.into() })
}

/// Without its profile a picture in a wide colour space would look pale. A format without profiles
/// shows it as sRGB.
fn keep_profile(encoder: &mut impl ImageEncoder, profile: Option<&[u8]>) {
    if let Some(profile) = profile {
        let _ = encoder.set_icc_profile(profile.to_vec());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use image::{Rgb, RgbImage, Rgba, RgbaImage};

    use super::*;

    fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn red(width: u32, height: u32) -> DynamicImage {
        RgbImage::from_pixel(width, height, Rgb([200, 30, 30])).into()
    }

    fn dimensions(resized: &Resized) -> Vec<(&'static str, u32, u32)> {
        resized.shape.copies.iter().map(|copy| (copy.size.name(), copy.width, copy.height)).collect()
    }

    #[test]
    fn a_picture_has_a_copy_of_each_size_that_it_exceeds() {
        for (width, height, expected) in [
            (320, 200, &[][..]),
            (321, 200, &[("small", 320, 199)]),
            (600, 1_200, &[("small", 160, 320), ("medium", 400, 800)]),
            (2_000, 1_000, &[("small", 320, 160), ("medium", 800, 400), ("large", 1_600, 800)]),
        ] {
            for (content_type, format) in
                [("image/jpeg", ImageFormat::Jpeg), ("image/png", ImageFormat::Png), ("image/webp", ImageFormat::WebP)]
            {
                let resized = resize(content_type, &file(&red(width, height), format)).unwrap().unwrap();
                assert_eq!((resized.shape.width, resized.shape.height), (width, height));
                assert_eq!(dimensions(&resized), expected, "{content_type}");
                for (copy, file) in resized.shape.copies.iter().zip(&resized.files) {
                    let decoded = image::load_from_memory_with_format(&file.bytes, ImageFormat::Jpeg).unwrap();
                    assert_eq!((decoded.width(), decoded.height()), (copy.width, copy.height));
                    let Rgb([red, green, _]) = decoded.to_rgb8()[(5, 5)];
                    assert!(red.abs_diff(200) < 8 && green.abs_diff(30) < 8, "{red} {green}");
                }
            }
        }
    }

    #[test]
    fn transparent_parts_stay_transparent() {
        let glass: DynamicImage = RgbaImage::from_pixel(400, 400, Rgba([0, 0, 255, 64])).into();
        let resized = resize("image/png", &file(&glass, ImageFormat::Png)).unwrap().unwrap();
        assert_eq!(resized.files[0].content_type, "image/webp");
        let copy = image::load_from_memory_with_format(&resized.files[0].bytes, ImageFormat::WebP).unwrap();
        assert_eq!(copy.to_rgba8()[(9, 9)], Rgba([0, 0, 255, 64]));
    }

    /// Cameras store a picture as the sensor saw it, and write beside it how to turn it.
    #[test]
    fn a_turned_photo_is_upright_in_its_copies() {
        let mut photo = file(&red(600, 400), ImageFormat::Jpeg);
        // An EXIF segment with the one entry `Orientation = 6`: turn it clockwise.
        let tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let mut segment = vec![0xff, 0xe1];
        segment.extend(u16::try_from(2 + 6 + tiff.len()).unwrap().to_be_bytes());
        segment.extend(b"Exif\0\0");
        segment.extend(tiff);
        photo.splice(2..2, segment);
        let resized = resize("image/jpeg", &photo).unwrap().unwrap();
        assert_eq!((resized.shape.width, resized.shape.height), (400, 600));
        assert_eq!(dimensions(&resized), [("small", 213, 320)]);
    }

    #[test]
    fn a_picture_that_is_too_large_or_damaged_is_not_decoded() {
        assert!(resize("image/avif", b"anything").is_none());
        assert!(resize("image/webp", b"a picture of ice").unwrap().is_err());
        let whole = file(&red(400, 400), ImageFormat::Png);
        assert!(resize("image/jpeg", &whole).unwrap().is_err(), "another type");
        assert!(resize("image/png", &whole[..whole.len() / 2]).unwrap().is_err());
        // A short file can claim any dimensions.
        let mut bomb = whole;
        bomb.splice(16..24, [0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        let checksum = crc(&bomb[12..29]);
        bomb.splice(29..33, checksum.to_be_bytes());
        let error = resize("image/png", &bomb).unwrap().unwrap_err();
        assert!(matches!(error, ImageError::Limits(_)), "{error}");
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
        })
    }
}
