s='hello world hello'; echo "${s/hello/bye}" "${s//hello/bye}" "${s/#hello/X}" "${s/%hello/X}" "${s//o}" "${s^}" "${s^^}" "${s,,}" "${s^^[lo]}" "${s~~}"
