"""Programs that use Penstock the way a user would."""
