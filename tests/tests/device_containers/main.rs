//! Containers of device code, made by their real tools, as gpustub and other tools read them.

mod unpack;
