"""The Autoscaler: as many lanes as the traffic needs, scaled out quickly, in slowly, and never beyond what helps."""
