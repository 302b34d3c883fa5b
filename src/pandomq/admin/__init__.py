"""What operators look at: the HTTP API, the metrics and the web page.

Will read frozen views of a broker and submit commands to it; it never touches live objects.
"""
