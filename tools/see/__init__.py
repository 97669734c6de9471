"""Pictures of what the interpreter saw: events (COURSE_EVENTS) get times under a cost model, and become a page or a trace."""
