//! Colours that are readable on light and dark pages.

/// Style sheet of all pictures but screens. The classes are those of the elements.
pub const STYLE: &str = "\
text { font-family: system-ui, sans-serif; fill: #1f2328 }
.line { stroke: #1f2328; fill: none }
.soft { stroke: #8b949e; fill: none }
.note { fill: #59636e }
.good { fill: #2da44e }
.bad { fill: #cf222e }
.peer { fill: #8b949e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .line { stroke: #e6edf3 }
  .note { fill: #9198a1 }
}";
