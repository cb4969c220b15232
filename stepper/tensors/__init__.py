"""What there is to say about one tensor or two: statistics, differences, planes, surveys."""
