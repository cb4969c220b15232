"""Say why a run stopped, as typed data and in words; find where a NaN or Inf first appears."""
