"""What pages and services on this machine share: refusing requests, limits, headers, and listening."""
