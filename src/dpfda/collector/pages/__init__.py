"""The dashboard: pages made on the server, one style sheet, one small script."""
