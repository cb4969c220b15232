"""Facts about one tensor or two: statistics, differences, planes, surveys."""
