"""Why a run stopped, as typed data and in words; where a NaN or Inf was born."""
