"""The stuck peer: some clients read nothing while healthy ones ask on a schedule."""
