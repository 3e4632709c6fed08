"""Bad inputs, strangers' run folders, crashes: what must never break."""
